//! Lease breaks: when a local program opens or changes a delegated file, the client must return its
//! delegation, and the program's open waits meanwhile.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use comity_backend::{LeaseWatch, lease_break_time};
use comity_export::Exports;
use comity_nfs4::Memory;
use comity_vfs::{AsServer, LocalUse};

use crate::limits::BREAK_RESERVE;

/// The thread that the kernel notifies of lease breaks.
pub(crate) struct LeaseBreakWatcher {
    /// Closing it ends the thread.
    end: UnixStream,
    thread: JoinHandle<()>,
}

impl LeaseBreakWatcher {
    /// Starts to handle lease breaks: `watch` receives the accesses of local programs to `exports`.
    ///
    /// # Errors
    /// A thread cannot be created.
    pub(crate) fn watch(
        watch: &Arc<LeaseWatch>,
        memory: Memory,
        exports: &Arc<Exports>,
    ) -> Result<Self> {
        let failed = "cannot start the thread that watches over files that are delegated";
        let (end, ended) = UnixStream::pair().context(failed)?;
        let (listens, is_listening) = mpsc::channel();
        let (watch, exports) = (Arc::clone(watch), Arc::clone(exports));
        let see_to_them = move || {
            if let Err(error) = listen((&watch, &ended), listens, &memory, &exports) {
                tracing::error!(%error, "no more files are delegated to clients: what programs \
                    do with them would not be seen");
            }
        };
        let thread = thread::Builder::new().name("openers".into()).spawn(see_to_them);
        let thread = thread.context(failed)?;
        // Wait until the thread listens, because clients that reclaim get delegations only then.
        // Its failure is logged.
        let _ = is_listening.recv();
        Ok(Self { end, thread })
    }

    /// Stops handling lease breaks.
    pub(crate) fn stop(self) {
        drop(self.end);
        // The thread does not panic; if it did, the log would show it.
        let _ = self.thread.join();
    }
}

fn listen(
    (watch, end): (&Arc<LeaseWatch>, &UnixStream),
    listens: Sender<()>,
    memory: &Memory,
    exports: &Exports,
) -> Result<()> {
    let server = AsServer::here()?;
    let listener = watch.listen(&server)?;
    drop(listens);
    let patience = patience(lease_break_time(&server));
    while listener.wait(end.as_fd())? {
        recall(memory, exports, patience);
    }
    Ok(())
}

/// Returns how long a client has to return a file for which a program waits.
fn patience(wait: Duration) -> Duration {
    wait.saturating_sub(BREAK_RESERVE).max(wait / 2)
}

fn recall(memory: &Memory, exports: &Exports, patience: Duration) {
    let now = memory.clock.now();
    for (file, local) in exports.current().wanted() {
        let wait = |patience| {
            memory.engine.program_waits(now, &file, now.saturating_add(patience));
        };
        match local {
            LocalUse::Open => wait(patience),
            LocalUse::OpenWithin(most) => wait(patience.min(self::patience(most))),
            LocalUse::Change => memory.engine.program_changed(now, &file),
        }
    }
    if let Some(callbacks) = &memory.callbacks {
        callbacks.pump(now);
    }
    memory.locals.iter().for_each(|locals| locals.settle());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_has_less_time_than_the_waiting_program() {
        let seconds = Duration::from_secs;
        assert_eq!(patience(seconds(45)), seconds(40));
        assert_eq!(patience(seconds(4)), seconds(2));
        assert_eq!(patience(seconds(0)), seconds(0));
    }
}
