mod handle;

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::event::epoll::{self, Event, EventFlags};
use rustix::io::Errno;
use rustix::time::Timespec;
use slab::Slab;

use crate::close_reason::CloseReason;
use crate::connection::Connection;
use crate::limits::{EVENTS_MAX, RETRIES_A_TURN};
use crate::metrics::forget_time;
use crate::settings::Patience;

pub(crate) use self::handle::{After, EventLoopHandle, LoopPool, Message, ReturnedReplies};

use self::handle::BELL;

/// An epoll set and its connections. One thread at a time owns and runs it.
pub(crate) struct EventLoop<V> {
    pub(crate) handle: Arc<EventLoopHandle<V>>,
    patience: Patience,
    slots: Slab<Slot<V>>,
    /// Number of connections that no thread has taken.
    here: usize,
    /// Events that were reported and not yet handled, the next one last.
    events: Vec<Reported>,
    /// Connections with more to do, served after those with events.
    again: VecDeque<usize>,
    /// Connections that wait for memory or for their next turn; their events may be turned off.
    starved: Vec<usize>,
    /// Starved connections that are tried again since the last tick, a few in each turn.
    retries: VecDeque<usize>,
    turn: usize,
    ending: Ending,
}

enum Slot<V> {
    Here(Box<Connection<V>>),
    /// A thread has the connection; events since then are noted.
    Away(Absence),
}

/// Events of a connection while another thread serves it.
#[derive(Default)]
struct Absence {
    reported: bool,
    hung_up: bool,
    owed: Vec<ReturnedReplies>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    Drain,
    Abort,
}

impl Ending {
    /// Returns whether a connection ends after its turn. While the event loop drains, a connection
    /// goes on if replies must still be sent to it or it has records to be answered. Records of a
    /// starved one are dropped: no tick tries them again.
    fn ends<V>(self, connection: &Connection<V>, after: After) -> bool {
        let is_owed = connection.backlog.is_some() || connection.away > 0;
        let is_served = connection.stopped && after != After::Starved;
        match self {
            Self::No => false,
            Self::Drain => !is_owed && !is_served,
            Self::Abort => true,
        }
    }
}

/// An event at a connection, or at the eventfd that announces messages.
struct Reported {
    token: u64,
    hung_up: bool,
}

impl Reported {
    fn of(event: &Event) -> Self {
        let Event { flags, data } = *event;
        let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
        Self { token: data.u64(), hung_up }
    }
}

/// A connection to be served.
pub(crate) struct Job<V> {
    pub(crate) token: usize,
    pub(crate) connection: Box<Connection<V>>,
}

impl<V> EventLoop<V> {
    pub(crate) fn new(handle: Arc<EventLoopHandle<V>>, patience: Patience) -> Self {
        Self {
            handle,
            patience,
            slots: Slab::new(),
            here: 0,
            events: Vec::with_capacity(EVENTS_MAX),
            again: VecDeque::new(),
            starved: Vec::new(),
            retries: VecDeque::new(),
            turn: 0,
            ending: Ending::No,
        }
    }

    /// Returns whether connections would wait if nobody ran this event loop.
    pub(crate) const fn has_others(&self) -> bool {
        self.here > 0
    }

    /// Returns whether the event loop has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.ending != Ending::No && self.slots.is_empty()
    }

    /// Waits until there is something to do, if there is nothing yet.
    pub(crate) fn wait(&mut self) {
        if self.events.is_empty() {
            self.handle.counters.waits.add(1);
            let at_once = Timespec::default();
            let has_more = !self.again.is_empty() || !self.retries.is_empty();
            let timeout = has_more.then_some(&at_once);
            let mut buffer = [const { MaybeUninit::uninit() }; EVENTS_MAX];
            let waited = epoll::wait(&self.handle.epoll, &mut buffer, timeout);
            forget_time();
            match waited {
                Ok((events, _)) => self.events.extend(events.iter().rev().map(Reported::of)),
                Err(Errno::INTR) => {}
                Err(error) => tracing::error!(%error, "waiting for connections failed"),
            }
        }
        for _ in 0..RETRIES_A_TURN.min(self.retries.len()) {
            self.retries.pop_front().into_iter().for_each(|token| self.retry(token));
        }
        self.turn = self.again.len();
    }

    /// Returns the next connection to serve, until another wait is due.
    pub(crate) fn next_job(&mut self, now: u32) -> Option<Job<V>> {
        loop {
            let Some(event) = self.events.pop() else { return self.next_again() };
            if event.token == BELL {
                self.read_letters(now);
            } else if let Some(job) = self.reported(event.token as usize, event.hung_up) {
                return Some(job);
            }
        }
    }

    /// Takes a connection back after its turn.
    pub(crate) fn settle(
        &mut self,
        token: usize,
        mut connection: Box<Connection<V>>,
        after: After,
    ) {
        let Some(slot) = self.slots.get_mut(token) else { return };
        let Slot::Away(absence) = slot else { return };
        let Absence { reported, hung_up, owed } = std::mem::take(absence);
        connection.hung_up |= hung_up;
        let is_owed = !owed.is_empty();
        if !owed.into_iter().all(|owed| pay(&mut connection, owed)) {
            CloseReason::Memory.tell(connection.peer, &self.handle.counters);
            return self.gone(token);
        }
        if self.ending.ends(&connection, after) {
            CloseReason::Drained.tell(connection.peer, &self.handle.counters);
            return self.gone(token);
        }
        hear(&self.handle, token, &mut connection, after);
        if after == After::Starved && !std::mem::replace(&mut connection.is_starved, true) {
            self.starved.push(token);
        }
        *slot = Slot::Here(connection);
        self.here += 1;
        match after {
            After::Starved => {}
            After::Wait if !reported && !is_owed => {}
            After::Wait | After::Again => self.again.push_back(token),
        }
    }

    /// Takes the replies of a call that a thread executed while others served the connection.
    pub(crate) fn owed(&mut self, owed: ReturnedReplies) {
        let token = owed.token;
        match self.slots.get_mut(token) {
            Some(Slot::Away(absence)) => absence.owed.push(owed),
            Some(Slot::Here(connection)) => {
                if pay(connection, owed) {
                    self.again.push_back(token);
                } else {
                    let id = connection.id();
                    self.end_if(|connection| {
                        (connection.id() == id).then_some(CloseReason::Memory)
                    });
                }
            }
            None => {}
        }
    }

    /// Notes that a connection that another thread had taken has ended.
    pub(crate) fn gone(&mut self, token: usize) {
        if self.slots.try_remove(token).is_some() {
            self.handle.closed();
        }
    }

    fn next_again(&mut self) -> Option<Job<V>> {
        while self.turn > 0 {
            self.turn -= 1;
            let token = self.again.pop_front()?;
            if let Some(job) = self.reported(token, false) {
                return Some(job);
            }
        }
        None
    }

    /// Takes a connection out of its slot, or notes the event if another thread has it.
    fn reported(&mut self, token: usize, ends: bool) -> Option<Job<V>> {
        let slot = self.slots.get_mut(token)?;
        if let Slot::Away(absence) = slot {
            absence.reported = true;
            absence.hung_up |= ends;
            return None;
        }
        let taken = std::mem::replace(slot, Slot::Away(Absence::default()));
        let Slot::Here(mut connection) = taken else { return None };
        connection.hung_up |= ends;
        self.here -= 1;
        Some(Job { token, connection })
    }

    fn read_letters(&mut self, now: u32) {
        for message in self.handle.messages() {
            match message {
                Message::Arrived(connection) => self.arrived(connection),
                Message::Back { token, connection, after } => self.settle(token, connection, after),
                Message::Gone(token) => self.gone(token),
                Message::ReturnedReplies(owed) => self.owed(owed),
                Message::Said(token) => self.again.push_back(token),
                Message::Tick => self.tick(now),
                Message::Drain => self.drain(),
                Message::Abort => self.abort(),
            }
        }
    }

    fn arrived(&mut self, connection: Box<Connection<V>>) {
        let entry = self.slots.vacant_entry();
        let enrolled = self.handle.register(connection.socket(), entry.key());
        if self.ending != Ending::No || enrolled.is_err() {
            return self.handle.closed();
        }
        // The order matters: a record that is sent meanwhile finds the token, or is found here.
        connection.call_back.token.store(entry.key(), Ordering::SeqCst);
        if connection.call_back.backchannel.has_records() {
            self.again.push_back(entry.key());
        }
        entry.insert(Slot::Here(connection));
        self.here += 1;
    }

    /// Ends connections whose time limit has passed, and tries starved ones again.
    fn tick(&mut self, now: u32) {
        let patience = self.patience;
        self.end_if(|connection| {
            connection.place.report();
            connection.overdue(now, &patience)
        });
        self.retries.extend(self.starved.drain(..));
    }

    /// Serves a starved connection; if another thread has it, it is tried after the next tick.
    fn retry(&mut self, token: usize) {
        match self.slots.get_mut(token) {
            Some(Slot::Away(_)) => self.starved.push(token),
            Some(Slot::Here(connection)) => {
                connection.is_starved = false;
                self.again.push_back(token);
            }
            None => {}
        }
    }

    /// Serves the data that has arrived by now for the last time.
    fn drain(&mut self) {
        self.ending = Ending::Drain;
        self.again.extend(self.slots.iter().map(|(token, _)| token));
    }

    fn abort(&mut self) {
        self.ending = Ending::Abort;
        self.end_if(|_| Some(CloseReason::Drained));
    }

    fn end_if(&mut self, why: impl Fn(&Connection<V>) -> Option<CloseReason>) {
        let handle = &self.handle;
        let before = self.slots.len();
        self.slots.retain(|_, slot| {
            let Slot::Here(connection) = slot else { return true };
            let Some(reason) = why(connection) else { return true };
            reason.tell(connection.peer, &handle.counters);
            handle.closed();
            false
        });
        self.here -= before - self.slots.len();
    }
}

/// Turns off events of arriving data while a connection rests, and turns them on again afterwards.
/// For a stranger that rests once a second they stay off, to save system calls.
fn hear<V>(
    handle: &EventLoopHandle<V>,
    token: usize,
    connection: &mut Connection<V>,
    after: After,
) {
    let is_unheard = after == After::Starved && connection.rests_unheard();
    if is_unheard == connection.is_unheard {
        return;
    }
    let writable = connection.backlog.is_some();
    // If it fails, the thread is woken more often, or the connection ends when it is overdue.
    let _ = match is_unheard {
        true => handle.pause_reading(connection.socket(), token),
        false => handle.set_interest(connection.socket(), token, writable),
    };
    connection.is_unheard = is_unheard;
}

/// Gives a connection the replies of its call if it is the same connection; `false` if they are
/// lost.
fn pay<V>(connection: &mut Connection<V>, owed: ReturnedReplies) -> bool {
    if connection.id() != owed.id {
        return true;
    }
    let Some(replies) = owed.replies else { return false };
    connection.append_replies(replies);
    true
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::connection::tests::connection;

    const LISTED: bool = true;

    fn event_loop() -> EventLoop<()> {
        EventLoop::new(Arc::new(EventLoopHandle::new().unwrap()), Patience::default())
    }

    /// Adds a connection, and returns it as in its first turn, with the peer's end.
    fn connect(event_loop: &mut EventLoop<()>, listed: bool) -> (Job<()>, UnixStream) {
        let (connection, there) = connection(listed);
        let token = Arc::clone(&connection.call_back.token);
        event_loop.arrived(connection);
        let job = event_loop.reported(token.load(Ordering::SeqCst), false).unwrap();
        (job, there)
    }

    /// Ends the turn of a connection that starves, and takes it for the next turn.
    fn starve(event_loop: &mut EventLoop<()>, Job { token, connection }: Job<()>) -> Job<()> {
        event_loop.settle(token, connection, After::Starved);
        event_loop.reported(token, false).unwrap()
    }

    #[test]
    fn a_connection_that_starves_again_and_again_is_listed_once() {
        let mut event_loop = event_loop();
        for listed in [LISTED, !LISTED] {
            let (mut job, _peer) = connect(&mut event_loop, listed);
            for _ in 0..100 {
                job = starve(&mut event_loop, job);
            }
            assert_eq!(event_loop.starved, [job.token]);
            // The connection is gone during a retry and stays in the list once.
            event_loop.tick(1);
            event_loop.wait();
            assert_eq!(event_loop.starved, [job.token]);
            job = starve(&mut event_loop, job);
            assert_eq!(event_loop.starved, [job.token]);
            event_loop.gone(job.token);
            event_loop.tick(2);
            event_loop.wait();
            assert!(event_loop.starved.is_empty() && event_loop.retries.is_empty());
        }
    }

    #[test]
    fn a_starved_connection_is_served_again_after_a_tick_and_may_be_listed_again() {
        let mut event_loop = event_loop();
        let (job, _peer) = connect(&mut event_loop, !LISTED);
        let token = job.token;
        event_loop.settle(token, job.connection, After::Starved);
        for second in 1..4 {
            assert!(event_loop.next_job(second).is_none(), "the connection rests until the tick");
            event_loop.tick(second);
            event_loop.wait();
            let job = event_loop.next_job(second).expect("the tick wakes it");
            assert!(event_loop.starved.is_empty());
            event_loop.settle(token, job.connection, After::Starved);
            assert_eq!(event_loop.starved, [token]);
        }
    }

    #[test]
    fn bytes_of_a_stranger_are_reported_after_its_rest() {
        use std::io::Write;
        let mut event_loop = event_loop();
        let (mut job, mut peer) = connect(&mut event_loop, !LISTED);
        let reports = |event_loop: &EventLoop<()>| {
            let mut events = [const { MaybeUninit::uninit() }; EVENTS_MAX];
            let at_once = Timespec::default();
            epoll::wait(&event_loop.handle.epoll, &mut events, Some(&at_once)).unwrap().0.len()
        };
        for second in 1..4 {
            event_loop.settle(job.token, job.connection, After::Starved);
            peer.write_all(b"x").unwrap();
            assert_eq!(reports(&event_loop), 0, "it rests");
            event_loop.tick(second);
            event_loop.wait();
            job = event_loop.next_job(second).unwrap();
        }
        event_loop.settle(job.token, job.connection, After::Wait);
        assert_eq!(reports(&event_loop), 1, "the bytes that came while the connection rested");
        let mut seen = [0; 9];
        let job = event_loop.reported(0, false).unwrap();
        assert_eq!(rustix::io::read(job.connection.socket(), &mut seen[..]), Ok(3));
        event_loop.settle(job.token, job.connection, After::Wait);
        peer.write_all(b"x").unwrap();
        assert_eq!(reports(&event_loop), 1, "and the bytes that come later");
    }

    #[test]
    fn a_draining_event_loop_ends_connections_that_no_tick_will_wake() {
        let mut event_loop = event_loop();
        let (mut starved, _a) = connect(&mut event_loop, !LISTED);
        let (mut stopped, _b) = connect(&mut event_loop, LISTED);
        let (mut owed, _c) = connect(&mut event_loop, LISTED);
        (starved.connection.stopped, stopped.connection.stopped) = (true, true);
        owed.connection.away = 1;
        event_loop.drain();
        event_loop.settle(starved.token, starved.connection, After::Starved);
        event_loop.settle(stopped.token, stopped.connection, After::Again);
        event_loop.settle(owed.token, owed.connection, After::Starved);
        let left: Vec<_> = event_loop.slots.iter().map(|(token, _)| token).collect();
        assert_eq!(left, [stopped.token, owed.token]);
        assert!(!event_loop.is_over());
        event_loop.abort();
        assert!(event_loop.is_over());
    }
}
