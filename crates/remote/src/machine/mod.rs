//! The interface between the state machine of a client and the shell around it, for all versions.

mod backoff;
mod event;
mod notice;
mod responsiveness;
mod schedule;

use std::time::Duration;

pub(crate) use backoff::pause;
pub(crate) use event::StateEvent;
pub(crate) use notice::{CallFailure, MountFailure, Notice};
pub(crate) use responsiveness::Responsiveness;
pub(crate) use schedule::Schedule;

use crate::calls::{LinkAction, LinkPlace};

/// The state machine of a client of one server: it does no I/O and reads no clock. `now` is the
/// time since any fixed moment. A submitted request ends with one [`MachineOutput::Done`], whatever
/// happens to connections, unless its caller forsakes it.
pub(crate) trait Machine: Send {
    /// A request.
    type Request: Send;
    /// The outcome of a request.
    type Outcome: Send;

    /// Connects, and introduces the client to the server. [`MachineOutput::Ready`] or
    /// [`MachineOutput::Failed`] follows.
    fn begin(&mut self, now: Duration);

    /// Submits a request; returns its number.
    fn submit(&mut self, now: Duration, request: Self::Request) -> u64;

    /// Notes that nobody waits for a request any more.
    fn forsake(&mut self, id: u64);

    /// Notes that a connection was made.
    fn handle_up(&mut self, now: Duration, place: LinkPlace);

    /// Notes that a connection has ended or could not be made.
    fn handle_down(&mut self, now: Duration, place: LinkPlace);

    /// Handles a record that was received.
    fn handle_record(&mut self, now: Duration, place: LinkPlace, bytes: Vec<u8>);

    /// Does what is due now. Called at the time of [`Machine::poll_timeout`].
    fn handle_timeout(&mut self, now: Duration);

    /// The time at which [`Machine::handle_timeout`] must be called.
    fn poll_timeout(&self) -> Option<Duration>;

    /// Returns the next action for the shell.
    fn poll_output(&mut self, now: Duration) -> Option<MachineOutput<Self::Outcome>>;

    /// The time after which requests without a reply fail; `None` if they never do.
    fn patience(&self) -> Option<Duration>;

    /// Bytes of all requests that have not ended.
    fn bytes_in_flight(&self) -> usize;
}

/// An action for the shell.
#[derive(Debug)]
pub(crate) enum MachineOutput<T> {
    /// Make, end or use a connection.
    Link(LinkAction),
    /// A request has ended.
    Done(u64, T),
    /// The server has accepted the client; requests are now performed.
    Ready,
    /// The server refused the client at the mount; the machine has ended.
    Failed(MountFailure),
    /// A message for the log.
    Note(Notice),
    /// An event for the user of opens and delegations.
    Event(StateEvent),
}
