//! A thread that is about to sleep leaves its event loop to another thread.

use std::cell::RefCell;
use std::rc::Rc;

/// Leaves an event loop before its thread sleeps, and takes it again.
pub(crate) trait BlockHook {
    /// Lets another thread have the event loop.
    fn leave(&self, why: WaitFor);
    /// Takes the event loop again if nobody took it.
    fn resume(&self);
}

/// The event that a thread sleeps for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WaitFor {
    /// Something that ends by itself.
    Work,
    /// Something that may come over the connection it serves.
    Peer,
}

thread_local! {
    static HOOK: RefCell<Option<Rc<dyn BlockHook>>> = const { RefCell::new(None) };
}

/// Sets the hook that leaves this thread's event loop before it sleeps.
pub(crate) fn set_hook(seat: Option<Rc<dyn BlockHook>>) {
    HOOK.set(seat);
}

/// Runs `work`, which may sleep for long. On a thread that serves connections others take over its
/// other connections meanwhile; on any other thread it is just run.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let _away = Away::new(WaitFor::Work);
    work()
}

/// The same for `work` that waits for what may come over the connection that is being served, as
/// the answer to a call that the server makes to its peer: that connection is served meanwhile even
/// if nothing more has come over it yet.
pub fn blocking_on_peers<T>(work: impl FnOnce() -> T) -> T {
    let _away = Away::new(WaitFor::Peer);
    work()
}

/// [`blocking`] in the shape of the hook of `comity-backend`.
pub fn blocking_hook(work: &mut dyn FnMut()) {
    blocking(work);
}

/// The thread may sleep while this value lives.
struct Away(Option<Rc<dyn BlockHook>>);

impl Away {
    /// Takes the hook, so that work within work finds none.
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
