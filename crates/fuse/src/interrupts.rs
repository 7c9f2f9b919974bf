//! The thread that interrupts requests whose processes have received a signal.
//!
//! The kernel's message for this (FUSE_INTERRUPT) does not arrive here, because `fuser` rejects it.
//! So this thread checks the processes of long requests for pending signals.

use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use comity_vfs::{Interrupt, Interruptible};

use crate::limits::INTERRUPT_PAUSE;
use crate::process::is_interrupted;

/// The requests under way, if the layer below may wait for another machine.
#[derive(Debug, Default)]
pub(crate) struct Interrupts {
    requests: Mutex<Requests>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Requests {
    by_number: HashMap<u64, WatchedRequest>,
    next: u64,
    /// True while the thread waits for a request.
    idle: bool,
    closed: bool,
}

#[derive(Debug)]
struct WatchedRequest {
    pid: u32,
    interrupt: Interrupt,
    /// True if the last check saw the request, too: only such requests count as long.
    is_old: bool,
}

/// A request that can be interrupted, until this is dropped.
#[derive(Debug)]
pub(crate) struct Watched<'a> {
    interrupts: &'a Interrupts,
    number: u64,
    _scope: Interruptible,
}

impl Interrupts {
    /// Lets the calling thread be interrupted when a signal is pending for thread `pid`.
    pub(crate) fn watch(&self, pid: u32) -> Watched<'_> {
        let scope = Interrupt::begin();
        let request = WatchedRequest { pid, interrupt: scope.interrupt(), is_old: false };
        let mut requests = self.lock();
        let number = requests.next;
        requests.next += 1;
        requests.by_number.insert(number, request);
        if std::mem::take(&mut requests.idle) {
            self.changed.notify_one();
        }
        Watched { interrupts: self, number, _scope: scope }
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Checks long requests in a loop, until the mount ends.
    pub(crate) fn run(&self) {
        while self.wait() {
            thread::sleep(INTERRUPT_PAUSE);
            // Check outside the lock, because each check reads a file.
            for (pid, interrupt) in self.long() {
                if is_interrupted(pid) {
                    interrupt.raise();
                }
            }
        }
    }

    /// Waits until there is a request; returns false when the mount ends.
    fn wait(&self) -> bool {
        let mut requests = self.lock();
        while requests.by_number.is_empty() && !requests.closed {
            requests.idle = true;
            requests = self.changed.wait(requests).unwrap_or_else(PoisonError::into_inner);
        }
        !requests.closed
    }

    /// The requests that were there at the last check.
    fn long(&self) -> Vec<(u32, Interrupt)> {
        let mut requests = self.lock();
        let mut long = Vec::new();
        for request in requests.by_number.values_mut() {
            if std::mem::replace(&mut request.is_old, true) {
                long.push((request.pid, request.interrupt.clone()));
            }
        }
        long
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.interrupts.lock().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_of_a_process_that_is_gone_is_interrupted() {
        let interrupts = Interrupts::default();
        thread::scope(|scope| {
            scope.spawn(|| interrupts.run());
            let watched = interrupts.watch(u32::MAX);
            while !Interrupt::is_raised() {
                thread::park();
            }
            drop(watched);
            assert!(interrupts.lock().by_number.is_empty());
            interrupts.close();
        });
    }
}
