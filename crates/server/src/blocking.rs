//! Hands a thread's event loop to another thread before the thread sleeps.

use std::cell::RefCell;
use std::rc::Rc;

/// Leaves an event loop before its thread sleeps, and takes it again.
pub(crate) trait BlockHook {
    /// Offers the event loop to other threads.
    fn leave(&self, why: WaitFor);
    /// Takes the event loop again if no other thread took it.
    fn resume(&self);
}

/// The event that a thread sleeps for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// Work that ends by itself.
    Work,
    /// Work that ends by itself and takes longer than other calls of the connection should wait.
    LongWork,
    /// Something that may arrive over the connection that the thread serves.
    Peer,
}

thread_local! {
    static HOOK: RefCell<Option<Rc<dyn BlockHook>>> = const { RefCell::new(None) };
}

/// Sets the hook that leaves this thread's event loop before it sleeps.
pub(crate) fn set_hook(seat: Option<Rc<dyn BlockHook>>) {
    HOOK.set(seat);
}

/// Runs `work`, which may sleep for long. If this thread serves connections, others serve them
/// meanwhile; any other thread just runs it.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let _away = Away::new(WaitFor::Work);
    work()
}

/// Runs `work` as [`blocking`] does, if it waits for something that may arrive over the connection
/// that is being served, such as the reply to a call of the server: other threads serve that
/// connection meanwhile even if nothing more has arrived over it yet.
pub fn blocking_on_peers<T>(work: impl FnOnce() -> T) -> T {
    let _away = Away::new(WaitFor::Peer);
    work()
}

/// Runs `work` as [`blocking`] does, if it may take longer than other calls of the connection that
/// is being served should wait: other threads serve that connection meanwhile even if nothing more
/// has arrived over it yet.
pub fn blocking_for_long<T>(work: impl FnOnce() -> T) -> T {
    let _away = Away::new(WaitFor::LongWork);
    work()
}

/// [`blocking_for_long`] with the signature of the hooks of `comity-nfs3` and `comity-nfs4`.
pub fn blocking_for_long_hook(work: &mut dyn FnMut()) {
    blocking_for_long(work);
}

/// [`blocking`] with the signature of the hook of `comity-backend`.
pub fn blocking_hook(work: &mut dyn FnMut()) {
    blocking(work);
}

/// While this value lives, the thread may sleep.
struct Away(Option<Rc<dyn BlockHook>>);

impl Away {
    /// Takes the hook, so that nested calls find none.
    fn new(why: WaitFor) -> Self {
        let seat = HOOK.take();
        if let Some(seat) = &seat {
            seat.leave(why);
        }
        Self(seat)
    }
}

impl Drop for Away {
    fn drop(&mut self) {
        if let Some(seat) = self.0.take() {
            seat.resume();
            HOOK.set(Some(seat));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Records the events.
    #[derive(Default)]
    struct Noted(RefCell<Vec<Event>>);

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Event {
        Left(WaitFor),
        Resumed,
        Worked,
    }

    impl BlockHook for Noted {
        fn leave(&self, why: WaitFor) {
            self.0.borrow_mut().push(Event::Left(why));
        }

        fn resume(&self) {
            self.0.borrow_mut().push(Event::Resumed);
        }
    }

    impl Noted {
        fn work(&self) -> u32 {
            self.0.borrow_mut().push(Event::Worked);
            7
        }
    }

    fn hooked() -> Rc<Noted> {
        let noted = Rc::<Noted>::default();
        set_hook(Some(Rc::clone(&noted) as _));
        noted
    }

    #[test]
    fn the_event_loop_is_left_before_the_work_and_taken_after_it() {
        let noted = hooked();
        assert_eq!(blocking(|| noted.work()), 7);
        assert_eq!(blocking_on_peers(|| noted.work()), 7);
        assert_eq!(blocking_for_long(|| noted.work()), 7);
        let around = |why| [Event::Left(why), Event::Worked, Event::Resumed];
        let events = [WaitFor::Work, WaitFor::Peer, WaitFor::LongWork].map(around);
        assert_eq!(*noted.0.borrow(), events.concat());
        set_hook(None);
    }

    #[test]
    fn nested_work_does_not_leave_the_event_loop_again() {
        let noted = hooked();
        let mut inner = || {
            blocking_on_peers(|| noted.work());
        };
        blocking(|| blocking_hook(&mut inner));
        let expected = [Event::Left(WaitFor::Work), Event::Worked, Event::Resumed];
        assert_eq!(*noted.0.borrow(), expected);
        set_hook(None);
    }

    #[test]
    fn the_event_loop_is_taken_again_after_a_panic() {
        let noted = hooked();
        let panicked = catch_unwind(AssertUnwindSafe(|| blocking(|| panic!("the work breaks"))));
        assert!(panicked.is_err());
        blocking(|| noted.work());
        let events = noted.0.borrow();
        assert_eq!(events[..2], [Event::Left(WaitFor::Work), Event::Resumed]);
        assert_eq!(events.len(), 5, "the next work leaves the event loop too");
        set_hook(None);
    }

    #[test]
    fn a_thread_outside_an_event_loop_only_does_the_work() {
        set_hook(None);
        assert_eq!(blocking(|| blocking_on_peers(|| 7)), 7);
    }
}
