//! A bound on the threads that sleep for one client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use comity_rpc::Backchannel;

/// The threads that sleep for the calls of one client, and its connections that wait because those
/// are as many as it may have.
#[derive(Default)]
pub(crate) struct Sleepers {
    count: AtomicUsize,
    postponed: Mutex<Vec<Arc<Backchannel>>>,
}

impl Sleepers {
    /// Returns whether a connection has to wait because `most` threads sleep for its client; its
    /// back channel is woken when one of them is free again.
    pub(crate) fn postpone(&self, line: &Arc<Backchannel>, most: usize) -> bool {
        if self.count.load(Ordering::SeqCst) < most {
            return false;
        }
        let mut postponed = self.postponed.lock().unwrap_or_else(PoisonError::into_inner);
        // The last one may have gone meanwhile, and would ring nobody.
        if self.count.load(Ordering::SeqCst) < most {
            return false;
        }
        if !postponed.iter().any(|other| other.id() == line.id()) {
            postponed.push(Arc::clone(line));
        }
        true
    }

    /// A thread sleeps for a call of the client.
    pub(crate) fn begin(&self) {
        self.count.fetch_add(1, Ordering::SeqCst);
    }

    /// The call is done: all that wait try again, because not every call sleeps.
    pub(crate) fn end(&self) {
        self.count.fetch_sub(1, Ordering::SeqCst);
        let mut postponed = self.postponed.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = std::mem::take(&mut *postponed);
        drop(postponed);
        lines.iter().for_each(|line| line.wake());
    }
}
