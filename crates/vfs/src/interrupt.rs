use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};

thread_local! {
    static CURRENT: RefCell<Option<Interrupt>> = const { RefCell::new(None) };
}

/// A way to interrupt the work of one thread from others: a verb that waits for another machine
/// ends with [`crate::Status::Interrupted`].
///
/// A verb that waits parks its thread and checks [`Interrupt::is_raised`] when it wakes.
#[derive(Debug, Clone)]
pub struct Interrupt(Arc<Raised>);

#[derive(Debug)]
struct Raised {
    thread: Thread,
    raised: AtomicBool,
}

/// The time in which the calling thread can be interrupted; it ends when this is dropped.
#[derive(Debug)]
pub struct Interruptible {
    interrupt: Interrupt,
    before: Option<Interrupt>,
    /// Makes the type not `Send`, so that it stays in its thread.
    _thread: std::marker::PhantomData<*const ()>,
}

impl Interrupt {
    /// Lets the calling thread be interrupted from now on.
    #[must_use]
    pub fn begin() -> Interruptible {
        let raised = Raised { thread: thread::current(), raised: AtomicBool::new(false) };
        let interrupt = Self(Arc::new(raised));
        let before = CURRENT.replace(Some(interrupt.clone()));
        Interruptible { interrupt, before, _thread: std::marker::PhantomData }
    }

    /// Interrupts the thread's work, and wakes the thread if it is parked.
    pub fn raise(&self) {
        self.0.raised.store(true, Ordering::SeqCst);
        self.0.thread.unpark();
    }

    /// Returns whether the work of the calling thread was interrupted.
    #[must_use]
    pub fn is_raised() -> bool {
        let is_it = |interrupt: &Self| interrupt.0.raised.load(Ordering::SeqCst);
        CURRENT.with_borrow(|current| current.as_ref().is_some_and(is_it))
    }
}

impl Interruptible {
    /// Returns a handle by which other threads can interrupt this one.
    #[must_use]
    pub fn interrupt(&self) -> Interrupt {
        self.interrupt.clone()
    }
}

impl Drop for Interruptible {
    fn drop(&mut self) {
        CURRENT.replace(self.before.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parked_thread_wakes_when_its_work_is_interrupted() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let waiting = thread::spawn(move || {
            let scope = Interrupt::begin();
            sender.send(scope.interrupt()).unwrap();
            while !Interrupt::is_raised() {
                thread::park();
            }
            drop(scope);
            Interrupt::is_raised()
        });
        receiver.recv().unwrap().raise();
        assert!(!waiting.join().unwrap(), "the next work is not interrupted");
    }

    #[test]
    fn a_thread_that_nobody_can_interrupt_is_not() {
        let inner = Interrupt::begin();
        inner.interrupt().raise();
        assert!(Interrupt::is_raised());
        assert!(!thread::spawn(Interrupt::is_raised).join().unwrap());
    }
}
