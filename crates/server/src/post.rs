use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::epoll::{self, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

use crate::connection::Connection;
use crate::counters::DeskCounters;
use crate::crew::Crew;
use crate::desk::Desk;
use crate::send::Backlog;

/// The token of the bell; no slot has it.
pub(crate) const BELL: u64 = u64::MAX;

/// Where a desk is reached from outside, whoever runs it.
pub(crate) struct Post<V> {
    pub(crate) epoll: OwnedFd,
    pub(crate) counters: DeskCounters,
    /// Connections of this desk, those on their way to it among them.
    pub(crate) connections: AtomicUsize,
    bell: OwnedFd,
    letters: Mutex<Vec<Letter<V>>>,
    /// The desk, while the thread that runs it sleeps and nobody else was needed.
    vacant: Mutex<Option<Box<Desk<V>>>>,
}

/// What a desk is told.
pub(crate) enum Letter<V> {
    /// A new connection.
    Arrived(Box<Connection<V>>),
    /// A connection comes back from a thread that left the desk; `again` if more is to be done.
    Back { token: usize, connection: Box<Connection<V>>, after: After },
    /// A connection will not come back.
    Gone(usize),
    /// What a thread owes a connection that was taken from it.
    Owed(Owed),
    /// There is something to say to a connection's peer.
    Said(usize),
    /// A second has passed.
    Tick,
    /// No new calls; end when all replies are sent.
    Drain,
    /// End.
    Abort,
}

/// The replies of a call that was done while others served its connection.
pub(crate) struct Owed {
    pub(crate) token: usize,
    /// The connection's number, since another may have the token by now.
    pub(crate) id: u64,
    /// Nothing if there was no memory for them: the connection has to end then.
    pub(crate) replies: Option<Backlog>,
}

/// How a turn of a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The socket has nothing more, or takes nothing more: an event will tell.
    Wait,
    /// There is more to do at once.
    Again,
    /// There is more to do when there is memory for it, or when a stranger may call again.
    Starved,
}

impl<V> Post<V> {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(
            &epoll,
            &bell,
            epoll::EventData::new_u64(BELL),
            EventFlags::IN | EventFlags::ET,
        )?;
        Ok(Self {
            epoll,
            bell,
            counters: DeskCounters::default(),
            connections: AtomicUsize::new(0),
            letters: Mutex::default(),
            vacant: Mutex::default(),
        })
    }

    /// Tells the desk; if nobody runs it at present, one of `crew` is called.
    pub(crate) fn deliver(&self, letter: Letter<V>, crew: &Crew<V>) {
        let mut letters = lock(&self.letters);
        letters.push(letter);
        if letters.len() == 1 {
            // An event counter that nobody reads for 2^64 rings is the only way to fail.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
        drop(letters);
        self.call_relief(crew);
    }

    /// The letters since the last time.
    pub(crate) fn letters(&self) -> Vec<Letter<V>> {
        std::mem::take(&mut *lock(&self.letters))
    }

    /// Leaves the desk here while the thread sleeps.
    pub(crate) fn park(&self, desk: Box<Desk<V>>, crew: &Crew<V>) {
        *lock(&self.vacant) = Some(desk);
        if !lock(&self.letters).is_empty() {
            self.call_relief(crew);
        }
    }

    /// Takes the desk again, if nobody else did.
    pub(crate) fn unpark(&self) -> Option<Box<Desk<V>>> {
        lock(&self.vacant).take()
    }

    /// Adds a connection's socket, which will report under `token`.
    pub(crate) fn enroll(&self, socket: BorrowedFd<'_>, token: usize) -> rustix::io::Result<()> {
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(token as u64), interest(false))
    }

    /// Says whether room for replies is to be reported too.
    pub(crate) fn watch(
        &self,
        socket: BorrowedFd<'_>,
        token: usize,
        writable: bool,
    ) -> rustix::io::Result<()> {
        let data = epoll::EventData::new_u64(token as u64);
        epoll::modify(&self.epoll, socket, data, interest(writable))
    }

    /// Leaves what arrives unreported, until [`Post::watch`].
    pub(crate) fn mute(&self, socket: BorrowedFd<'_>, token: usize) -> rustix::io::Result<()> {
        let data = epoll::EventData::new_u64(token as u64);
        epoll::modify(&self.epoll, socket, data, EventFlags::RDHUP | EventFlags::ET)
    }

    /// Connections it has.
    pub(crate) fn load(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// One connection less.
    pub(crate) fn closed(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    fn call_relief(&self, crew: &Crew<V>) {
        // Held throughout: whoever left the desk must not find it gone and nobody running it.
        let mut vacant = lock(&self.vacant);
        let Some(desk) = vacant.take() else { return };
        *vacant = crew.run(desk).err();
    }
}

/// Edges, not levels: the desk of a sleeping thread would otherwise report its connection for ever.
fn interest(writable: bool) -> EventFlags {
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if writable { flags | EventFlags::OUT } else { flags }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
