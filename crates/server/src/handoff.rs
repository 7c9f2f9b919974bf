//! The part of a thread's state that is accessible while a call runs: if the call sleeps, other
//! threads continue with the rest.

use std::cell::{Cell, RefCell};
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

use comity_xdr::Encoder;

use crate::admission::PeerCounters;
use crate::blocking::{WaitFor, blocking};
use crate::connection::Connection;
use crate::event_loop::{Job, ReturnedReplies};
use crate::limits::{CALLS_AWAY_MAX, OWED_PAUSE, OWED_TRIES};
use crate::memory_budget::{Account, LARGE_BYTES};
use crate::receive_buffer::ReceiveBuffer;
use crate::reply_writer::{Backlog, Outgoing, Progress};

/// A thread's receive buffer, and its connection while a call runs.
pub(crate) struct Handoff<V> {
    pub(crate) buffer: RefCell<Vec<u8>>,
    running: RefCell<Option<Running<V>>>,
    handed_off: Cell<Option<HandedOff>>,
}

/// The connection of the call that runs.
struct Running<V> {
    token: usize,
    connection: Box<Connection<V>>,
    /// Position of the bytes after the call in the buffer.
    rest: Range<usize>,
}

/// The destination of the replies of a call whose connection others serve meanwhile.
pub(crate) struct HandedOff {
    token: usize,
    id: u64,
    account: Arc<Account>,
    counters: Arc<PeerCounters>,
}

/// A connection that a thread has, unless it was handed off: then the thread must not use it any
/// more.
pub(crate) struct HeldConnection<V>(Option<Box<Connection<V>>>);

impl<V> Handoff<V> {
    pub(crate) fn new() -> Self {
        Self {
            buffer: RefCell::new(vec![0; LARGE_BYTES]),
            running: RefCell::new(None),
            handed_off: Cell::new(None),
        }
    }

    /// Runs a call of a connection; `rest` is the position of the bytes after it in the buffer. If
    /// the connection was handed off meanwhile, returns the destination of the reply.
    pub(crate) fn run(
        &self,
        (token, connection): (usize, &mut HeldConnection<V>),
        rest: Range<usize>,
        call: impl FnOnce(),
    ) -> Option<HandedOff> {
        let connection_now = connection.0.take();
        let running = connection_now.map(|connection| Running { token, connection, rest });
        self.running.replace(running);
        call();
        match self.running.take() {
            Some(running) => {
                connection.0 = Some(running.connection);
                None
            }
            None => self.handed_off.take(),
        }
    }

    /// Returns the account of the address whose call runs.
    pub(crate) fn account(&self) -> Option<Arc<Account>> {
        let running = self.running.borrow();
        running.as_ref().map(|running| Arc::clone(&running.connection.place.account))
    }

    /// Returns whether it helps if others continue with the connection of the running call: more
    /// bytes wait, or its client sends calls without waiting for replies, or the call takes long or
    /// waits for an answer over this connection.
    pub(crate) fn is_worth_handing_off(&self, why: WaitFor) -> bool {
        self.running.borrow().as_ref().is_some_and(|running| {
            let away = running.connection.away;
            let goes_on = away > 0 || !running.rest.is_empty() || why != WaitFor::Work;
            away < CALLS_AWAY_MAX && goes_on
        })
    }

    /// Takes the connection of the running call, with the bytes after the call, so that its event
    /// loop can have it, unless there is no memory for that.
    pub(crate) fn hand_off(&self) -> Option<Job<V>> {
        let mut running = self.running.borrow_mut();
        let Running { token, mut connection, rest } = running.take()?;
        let account = Arc::clone(&connection.place.account);
        let kept = ReceiveBuffer::part(&self.buffer.borrow()[rest.clone()], &account);
        let Ok(received) = kept else {
            *running = Some(Running { token, connection, rest });
            return None;
        };
        let counters = connection.place.peer_counters();
        connection.received = received;
        connection.stopped = !rest.is_empty();
        connection.away += 1;
        self.handed_off.set(Some(HandedOff { token, id: connection.id(), account, counters }));
        Some(Job { token, connection })
    }

    /// Forgets a call that ended in a panic of the server itself.
    pub(crate) fn clear(&self) {
        self.running.take();
        self.handed_off.take();
    }
}

impl HandedOff {
    /// Adds the time that calls took to the counters of the address.
    pub(crate) fn add_service(&self, nanoseconds: u64) {
        self.counters.service_nanoseconds.add(nanoseconds);
    }

    /// Returns the replies for the connection. Waits a bounded time for memory to keep them.
    pub(crate) fn owed(self, replies: &Encoder) -> ReturnedReplies {
        let Self { token, id, account, .. } = self;
        let keep = || Backlog::new(Outgoing::of(replies), Progress::default(), &account).ok();
        let keep_later = || {
            std::thread::sleep(OWED_PAUSE);
            keep()
        };
        let patiently = || blocking(|| (0..OWED_TRIES).find_map(|_| keep_later()));
        ReturnedReplies { token, id, replies: keep().or_else(patiently) }
    }
}

impl<V> HeldConnection<V> {
    pub(crate) const fn new(connection: Box<Connection<V>>) -> Self {
        Self(Some(connection))
    }

    /// Returns the connection, unless it was handed off.
    pub(crate) fn into_connection(self) -> Option<Box<Connection<V>>> {
        self.0
    }
}

/// Valid in each use: a turn ends with the call that handed off its connection.
const NOT_LENT: &str = "a connection that was lent is not touched";

impl<V> Deref for HeldConnection<V> {
    type Target = Connection<V>;

    #[expect(clippy::expect_used, reason = "the turn ends with the call that lent it")]
    fn deref(&self) -> &Connection<V> {
        self.0.as_deref().expect(NOT_LENT)
    }
}

impl<V> DerefMut for HeldConnection<V> {
    #[expect(clippy::expect_used, reason = "the turn ends with the call that lent it")]
    fn deref_mut(&mut self) -> &mut Connection<V> {
        self.0.as_deref_mut().expect(NOT_LENT)
    }
}
