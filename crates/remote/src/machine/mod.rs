//! The border between a client as plain data and the shell around it, in all versions.

mod backoff;
mod event;
mod notice;

use std::time::Duration;

pub(crate) use backoff::pause;
pub(crate) use event::StateEvent;
pub(crate) use notice::{CallFailure, MountFailure, Notice};

use crate::calls::{LinkAction, LinkPlace};

/// A client of one server as plain data: it does no I/O and reads no clock. `now` is a time since
/// any fixed moment. A request that was submitted ends with one [`MachineOutput::Done`], whatever
/// becomes of connections, unless its caller forsakes it.
pub(crate) trait Machine: Send {
    /// A request.
    type Request: Send;
    /// The outcome of one.
    type Outcome: Send;

    /// Connects and introduces the client. [`MachineOutput::Ready`] or [`MachineOutput::Failed`]
    /// follows.
    fn begin(&mut self, now: Duration);

    /// Submits a request; returns its number.
    fn submit(&mut self, now: Duration, request: Self::Request) -> u64;

    /// Nobody waits for a request any more.
    fn forsake(&mut self, id: u64);

    /// A connection was made.
    fn handle_up(&mut self, now: Duration, place: LinkPlace);

    /// A connection has ended, or could not be made.
    fn handle_down(&mut self, now: Duration, place: LinkPlace);

    /// A record came over a connection.
    fn handle_record(&mut self, now: Duration, place: LinkPlace, bytes: Vec<u8>);

    /// The time of [`Machine::poll_timeout`] has come.
    fn handle_timeout(&mut self, now: Duration);

    /// The time at which [`Machine::handle_timeout`] has something to do.
    fn poll_timeout(&self) -> Option<Duration>;

    /// The next thing to be done.
    fn poll_output(&mut self, now: Duration) -> Option<MachineOutput<Self::Outcome>>;

    /// The time after which requests fail that were not answered; `None` if they never do.
    fn patience(&self) -> Option<Duration>;

    /// Bytes of all requests that have not ended.
    fn bytes_in_flight(&self) -> usize;
}

/// An order of a machine to the shell.
#[derive(Debug)]
pub(crate) enum MachineOutput<T> {
    /// Make, end or use a connection.
    Link(LinkAction),
    /// A request has ended.
    Done(u64, T),
    /// The client is introduced, and requests are done.
    Ready,
    /// The client could not be introduced at first; it has ended.
    Failed(MountFailure),
    /// Something for the log.
    Note(Notice),
    /// Something for whoever looks after opens and delegations.
    Event(StateEvent),
}
