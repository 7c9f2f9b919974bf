//! What a thread does before it sleeps: it leaves its desk to another.

use std::cell::RefCell;
use std::rc::Rc;

/// A thread's seat at a desk.
pub(crate) trait Seated {
    /// Lets another thread have the desk.
    fn leave(&self, why: Why);
    /// Takes the desk again if nobody took it.
    fn resume(&self);
}

/// What a thread sleeps for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Why {
    /// Something that ends by itself.
    Work,
    /// Something that may come over the connection it serves.
    Peer,
}

thread_local! {
    static SEAT: RefCell<Option<Rc<dyn Seated>>> = const { RefCell::new(None) };
}

/// Tells what this thread has to leave before it sleeps.
pub(crate) fn sit(seat: Option<Rc<dyn Seated>>) {
    SEAT.set(seat);
}

/// Runs `work`, which may sleep for long. On a thread that serves connections others take over its
/// other connections meanwhile; on any other thread it is just run.
pub fn blocking<T>(work: impl FnOnce() -> T) -> T {
    let _away = Away::new(Why::Work);
    work()
}

/// The same for `work` that waits for what may come over the connection that is being served, as
/// the answer to a call that the server makes to its peer: that connection is served meanwhile even
/// if nothing more has come over it yet.
pub fn blocking_on_peers<T>(work: impl FnOnce() -> T) -> T {
    let _away = Away::new(Why::Peer);
    work()
}

/// [`blocking`] in the shape of the hook of `comity-backend`.
pub fn blocking_hook(work: &mut dyn FnMut()) {
    blocking(work);
}

/// While it lives the thread may sleep.
struct Away(Option<Rc<dyn Seated>>);

impl Away {
    /// Takes the seat, so that work within work finds none to leave.
    fn new(why: Why) -> Self {
        let seat = SEAT.take();
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
            SEAT.set(Some(seat));
        }
    }
}
