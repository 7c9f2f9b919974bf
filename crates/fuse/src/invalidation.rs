//! The thread that tells the kernel what it must forget.
//!
//! The kernel may wait inside such a message for a page that an unanswered READ holds. No thread
//! that answers requests ever sends one, and no lock is held meanwhile: that has made processes
//! unkillable elsewhere (libfuse issue 341, hf-mount issue 156).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};

use rustix::io::Errno;

use crate::limits::{INVALIDATION_PAUSE, INVALIDATIONS_MAX};

/// The messages to the kernel that this crate sends of its own accord.
pub(crate) trait Notifier: Send + Sync {
    /// The attributes of an object are not valid any longer, nor are its pages if `data`.
    ///
    /// # Errors
    /// The kernel's error.
    fn forget_object(&self, number: u64, data: bool) -> io::Result<()>;

    /// A name in a directory is not valid any longer.
    ///
    /// # Errors
    /// The kernel's error.
    fn forget_name(&self, dir: u64, name: &[u8]) -> io::Result<()>;
}

/// Something that the kernel must forget, by its own numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Invalidation {
    /// The attributes of an object.
    Attributes(u64),
    /// The attributes and the pages of an object.
    Data(u64),
    /// A name in a directory.
    Name(u64, Box<[u8]>),
}

/// The queue of the thread. Answering threads put messages in and never wait.
#[derive(Debug)]
pub(crate) struct InvalidationQueue {
    sender: SyncSender<Invalidation>,
    closed: AtomicBool,
    lost: AtomicBool,
}

impl InvalidationQueue {
    /// A queue and its other end.
    pub(crate) fn new() -> (Self, Receiver<Invalidation>) {
        let (sender, receiver) = sync_channel(INVALIDATIONS_MAX);
        (Self { sender, closed: AtomicBool::new(false), lost: AtomicBool::new(false) }, receiver)
    }

    /// Puts a message in. A full queue drops it, and says so once in the log: names and attributes
    /// run out by themselves.
    pub(crate) fn push(&self, message: Invalidation) {
        if self.sender.try_send(message).is_err() && !self.lost.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "too much for the kernel to forget at once: some of it stays until it expires"
            );
        }
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }
}

/// Sends what comes out of the queue and what `poll` yields, until the queue is closed.
pub(crate) fn run(
    queue: &Arc<InvalidationQueue>,
    receiver: &Receiver<Invalidation>,
    notifier: &OnceLock<Box<dyn Notifier>>,
    poll: impl Fn() -> Option<Invalidation>,
) {
    while !queue.is_closed() {
        let first = receiver.recv_timeout(INVALIDATION_PAUSE);
        if first == Err(RecvTimeoutError::Disconnected) {
            return;
        }
        let Some(notifier) = notifier.get() else { continue };
        first.into_iter().for_each(|message| send(notifier.as_ref(), message));
        while let Some(message) = receiver.try_recv().ok().or_else(&poll) {
            send(notifier.as_ref(), message);
        }
    }
}

fn send(notifier: &dyn Notifier, message: Invalidation) {
    let sent = match &message {
        Invalidation::Attributes(number) => notifier.forget_object(*number, false),
        Invalidation::Data(number) => notifier.forget_object(*number, true),
        Invalidation::Name(dir, name) => notifier.forget_name(*dir, name),
    };
    let Err(error) = sent else { return };
    let harmless = [Errno::NOENT, Errno::NOTEMPTY, Errno::BUSY, Errno::NOTDIR, Errno::NODEV];
    let is_harmless =
        harmless.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    if !is_harmless {
        tracing::warn!(?message, %error, "the kernel did not forget what it was told to");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Heard(Arc<Mutex<Vec<String>>>);

    impl Notifier for Heard {
        fn forget_object(&self, number: u64, data: bool) -> io::Result<()> {
            self.0.lock().unwrap().push(format!("{number} {data}"));
            Ok(())
        }

        fn forget_name(&self, dir: u64, name: &[u8]) -> io::Result<()> {
            self.0.lock().unwrap().push(format!("{dir}/{}", name.escape_ascii()));
            Err(Errno::NOENT.into())
        }
    }

    #[test]
    fn messages_are_sent_by_the_thread_in_their_order_and_then_those_polled() {
        let (queue, receiver) = InvalidationQueue::new();
        let queue = Arc::new(queue);
        queue.push(Invalidation::Data(5));
        queue.push(Invalidation::Name(6, b"a".to_vec().into()));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let notifier: OnceLock<Box<dyn Notifier>> = OnceLock::new();
        let _ = notifier.set(Box::new(Heard(Arc::clone(&heard))));
        let polled = Mutex::new(vec![Invalidation::Attributes(7)]);
        let poll = || {
            let message = polled.lock().unwrap().pop();
            if message.is_none() {
                queue.close();
            }
            message
        };
        run(&queue, &receiver, &notifier, poll);
        assert_eq!(*heard.lock().unwrap(), ["5 true", "6/a", "7 false"]);
    }

    #[test]
    fn a_full_queue_does_not_wait() {
        let (queue, _receiver) = InvalidationQueue::new();
        for number in 0..INVALIDATIONS_MAX as u64 + 10 {
            queue.push(Invalidation::Data(number));
        }
        assert!(queue.lost.load(Ordering::Relaxed));
    }
}
