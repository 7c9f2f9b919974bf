//! The thread that sends invalidations to the kernel.
//!
//! While the kernel handles one, it may wait for a page that an unanswered READ has locked. So no
//! thread that answers requests sends invalidations, and no lock is held meanwhile. Elsewhere this
//! deadlock has made processes unkillable (libfuse issue 341, hf-mount issue 156).

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustix::io::Errno;

use crate::limits::INVALIDATIONS_MAX;

/// Sends invalidations to the kernel.
pub(crate) trait Notifier: Send + Sync {
    /// Invalidates the attributes and pages of an object.
    ///
    /// # Errors
    /// The kernel's error.
    fn forget_object(&self, number: u64) -> io::Result<()>;

    /// Invalidates a name in a directory.
    ///
    /// # Errors
    /// The kernel's error.
    fn forget_name(&self, dir: u64, name: &[u8]) -> io::Result<()>;
}

/// An entry of the queue.
pub(crate) enum Invalidation {
    /// The attributes and the pages of an object.
    Data(u64),
    /// The same; the closure answers a request that may be answered only afterwards.
    DataBefore(u64, Box<dyn FnOnce() + Send>),
    /// A name in a directory.
    Name(u64, Box<[u8]>),
    /// The mount has ended.
    End,
}

/// The queue of the thread. Threads that answer requests add entries without waiting.
#[derive(Debug)]
pub(crate) struct InvalidationQueue {
    sender: SyncSender<Invalidation>,
    lost: AtomicBool,
}

impl InvalidationQueue {
    /// Makes a queue; returns both ends.
    pub(crate) fn new() -> (Self, Receiver<Invalidation>) {
        let (sender, receiver) = sync_channel(INVALIDATIONS_MAX);
        (Self { sender, lost: AtomicBool::new(false) }, receiver)
    }

    /// Adds an entry. A full queue drops it, and logs that once: names and attributes expire
    /// anyway.
    pub(crate) fn push(&self, message: Invalidation) {
        if self.sender.try_send(message).is_err() && !self.lost.swap(true, Ordering::Relaxed) {
            tracing::warn!(
                "too many invalidations: some names and attributes stay until they expire"
            );
        }
    }

    /// Adds an object whose data the kernel must drop before a request is answered. Returns false,
    /// without calling `answer`, if there is no room.
    pub(crate) fn push_before(&self, number: u64, answer: Box<dyn FnOnce() + Send>) -> bool {
        self.sender.try_send(Invalidation::DataBefore(number, answer)).is_ok()
    }

    /// Ends the thread.
    pub(crate) fn close(&self) {
        // A failure means that the thread has already ended.
        let _ = self.sender.send(Invalidation::End);
    }
}

/// Sends the entries of the queue, until the mount ends.
pub(crate) fn run(receiver: &Receiver<Invalidation>, notifier: &dyn Notifier) {
    for message in receiver {
        match message {
            Invalidation::End => return,
            Invalidation::DataBefore(number, answer) => {
                send(notifier, &Invalidation::Data(number));
                answer();
            }
            message => send(notifier, &message),
        }
    }
}

/// Sends one invalidation. Must not be called by a thread that answers requests.
pub(crate) fn send(notifier: &dyn Notifier, message: &Invalidation) {
    let sent = match message {
        Invalidation::Data(number) | Invalidation::DataBefore(number, _) => {
            notifier.forget_object(*number)
        }
        Invalidation::Name(dir, name) => notifier.forget_name(*dir, name),
        Invalidation::End => Ok(()),
    };
    let Err(error) = sent else { return };
    let harmless = [Errno::NOENT, Errno::NOTEMPTY, Errno::BUSY, Errno::NOTDIR, Errno::NODEV];
    let is_harmless =
        harmless.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()));
    if !is_harmless {
        tracing::warn!(%error, "the kernel rejected an invalidation");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Notifier for Heard {
        fn forget_object(&self, number: u64) -> io::Result<()> {
            self.0.lock().unwrap().push(number.to_string());
            Ok(())
        }

        fn forget_name(&self, dir: u64, name: &[u8]) -> io::Result<()> {
            self.0.lock().unwrap().push(format!("{dir}/{}", name.escape_ascii()));
            Err(Errno::NOENT.into())
        }
    }

    #[test]
    fn messages_are_sent_in_their_order_until_the_end() {
        let (queue, receiver) = InvalidationQueue::new();
        queue.push(Invalidation::Data(5));
        queue.push(Invalidation::Name(6, b"a".to_vec().into()));
        queue.close();
        queue.push(Invalidation::Data(7));
        let heard = Heard::default();
        run(&receiver, &heard);
        assert_eq!(*heard.0.lock().unwrap(), ["5", "6/a"]);
    }

    #[test]
    fn a_request_is_answered_after_the_kernel_has_forgotten_the_data() {
        let (queue, receiver) = InvalidationQueue::new();
        let heard = std::sync::Arc::new(Heard::default());
        let told = std::sync::Arc::clone(&heard);
        let answer = move || told.0.lock().unwrap().push("answer".to_owned());
        assert!(queue.push_before(5, Box::new(answer)));
        queue.close();
        run(&receiver, heard.as_ref());
        assert_eq!(*heard.0.lock().unwrap(), ["5", "answer"]);
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
