use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::epoll::{self, EventFlags};
use rustix::event::{EventfdFlags, eventfd};

use super::EventLoop;
use crate::connection::Connection;
use crate::counters::LoopCounters;
use crate::reply_writer::Backlog;
use crate::thread_pool::ThreadPool;

/// The epoll token of the eventfd that announces messages; no slot has it.
pub(crate) const BELL: u64 = u64::MAX;

/// The part of an event loop that other threads may use, whichever thread runs the loop.
pub(crate) struct EventLoopHandle<V> {
    pub(crate) epoll: OwnedFd,
    pub(crate) counters: LoopCounters,
    /// Number of connections of this event loop, including those on their way to it.
    pub(crate) connections: AtomicUsize,
    bell: OwnedFd,
    messages: Mutex<Vec<Message<V>>>,
    /// The event loop, while the thread that runs it sleeps and no other thread has taken it.
    parked: Mutex<Option<Box<EventLoop<V>>>>,
}

/// The pool of the threads that run event loops.
pub(crate) type LoopPool<V> = ThreadPool<Box<EventLoop<V>>>;

/// A message to an event loop.
pub(crate) enum Message<V> {
    /// A new connection.
    Arrived(Box<Connection<V>>),
    /// A connection returns from a thread that left the event loop; `again` if more must be done.
    Back { token: usize, connection: Box<Connection<V>>, after: After },
    /// A connection that another thread took will not return.
    Gone(usize),
    /// Replies that another thread has prepared for one of this loop's connections.
    ReturnedReplies(ReturnedReplies),
    /// A connection's back channel has records to send.
    Said(usize),
    /// A second has passed.
    Tick,
    /// The event loop accepts no new calls, and ends when all replies are sent.
    Drain,
    /// The event loop ends at once.
    Abort,
}

/// The replies of a call that was executed while others served its connection.
pub(crate) struct ReturnedReplies {
    pub(crate) token: usize,
    /// The connection's number, since another connection may have the slot by now.
    pub(crate) id: u64,
    /// `None` if there was no memory for the replies: the connection must end then.
    pub(crate) replies: Option<Backlog>,
}

/// The outcome of a connection's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    /// The socket is empty, or takes no more bytes: an event will follow.
    Wait,
    /// The connection has more to do at once.
    Again,
    /// The connection has more to do when there is memory for it, or when the turn of a stranger
    /// comes again.
    Starved,
}

impl<V> EventLoopHandle<V> {
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
            counters: LoopCounters::default(),
            connections: AtomicUsize::new(0),
            messages: Mutex::default(),
            parked: Mutex::default(),
        })
    }

    /// Sends a message; if no thread runs the event loop at present, a thread of `pool` is started.
    pub(crate) fn deliver(&self, message: Message<V>, pool: &LoopPool<V>) {
        let mut messages = lock(&self.messages);
        messages.push(message);
        if messages.len() == 1 {
            // This fails only if the counter overflows, after 2^64 writes.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
        drop(messages);
        self.start_spare(pool);
    }

    /// Takes the messages since the last call.
    pub(crate) fn messages(&self) -> Vec<Message<V>> {
        std::mem::take(&mut *lock(&self.messages))
    }

    /// Stores the event loop here while the thread sleeps.
    pub(crate) fn park(&self, event_loop: Box<EventLoop<V>>, pool: &LoopPool<V>) {
        *lock(&self.parked) = Some(event_loop);
        if !lock(&self.messages).is_empty() {
            self.start_spare(pool);
        }
    }

    /// Takes the event loop again, if no other thread did.
    pub(crate) fn unpark(&self) -> Option<Box<EventLoop<V>>> {
        lock(&self.parked).take()
    }

    /// Adds a connection's socket to the epoll set, which reports it with `token`.
    pub(crate) fn register(&self, socket: BorrowedFd<'_>, token: usize) -> rustix::io::Result<()> {
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(token as u64), interest(false))
    }

    /// Sets whether the epoll set also reports room for replies.
    pub(crate) fn set_interest(
        &self,
        socket: BorrowedFd<'_>,
        token: usize,
        writable: bool,
    ) -> rustix::io::Result<()> {
        let data = epoll::EventData::new_u64(token as u64);
        epoll::modify(&self.epoll, socket, data, interest(writable))
    }

    /// Stops reports of arriving data until [`EventLoopHandle::set_interest`].
    pub(crate) fn pause_reading(
        &self,
        socket: BorrowedFd<'_>,
        token: usize,
    ) -> rustix::io::Result<()> {
        let data = epoll::EventData::new_u64(token as u64);
        epoll::modify(&self.epoll, socket, data, EventFlags::RDHUP | EventFlags::ET)
    }

    /// Returns the number of its connections.
    pub(crate) fn load(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Subtracts one connection.
    pub(crate) fn closed(&self) {
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }

    fn start_spare(&self, pool: &LoopPool<V>) {
        // The lock is held throughout: the thread that parked the event loop must not find it taken
        // while no other thread runs it.
        let mut parked = lock(&self.parked);
        let Some(event_loop) = parked.take() else { return };
        *parked = pool.run(event_loop).err();
    }
}

/// Returns edge-triggered events: with level-triggered ones, the event loop of a sleeping thread
/// would report its connection repeatedly.
fn interest(writable: bool) -> EventFlags {
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if writable { flags | EventFlags::OUT } else { flags }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
