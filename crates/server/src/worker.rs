//! The main function of a pool thread: it runs an event loop, round after round, until the loop
//! ends or had to be left to another thread.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use comity_xdr::Encoder;

use crate::blocking::{self, BlockHook, WaitFor, blocking};
use crate::close_reason::CloseReason;
use crate::connection::Connection;
use crate::connection_io::{ConnectionIo, Pending, Served};
use crate::event_loop::{After, EventLoopHandle, Message};
use crate::event_loop::{EventLoop, Job};
use crate::handoff::{HandedOff, Handoff, HeldConnection};
use crate::limits::REPLY_BYTES_KEPT;
use crate::memory_budget::Account;
use crate::metrics::{forget_time, take_service_nanoseconds};
use crate::service::Service;
use crate::shared::SharedState;

/// Runs event loops until the thread pool does not need this thread any more.
pub(crate) fn work<S: Service>(shared: &Arc<SharedState<S>>) {
    let seat = Rc::new(Worker::new(Arc::clone(shared)));
    blocking::set_hook(Some(Rc::clone(&seat) as Rc<dyn BlockHook>));
    let mut replies = Encoder::new();
    while let Some(event_loop) = shared.pool.next() {
        seat.run(event_loop, &mut replies, shared);
        seat.wake();
        shared.pool.is_free();
    }
    blocking::set_hook(None);
}

/// The state of one thread. It contains the event loop unless the thread handed it off to another
/// thread.
struct Worker<S: Service> {
    shared: Arc<SharedState<S>>,
    event_loop: RefCell<Option<Box<EventLoop<S::Visitor>>>>,
    /// The handle of the event loop that this thread ran last.
    handle: RefCell<Option<Arc<EventLoopHandle<S::Visitor>>>>,
    /// The handle of the event loop that this thread parked and no other thread has taken.
    parked: RefCell<Option<Arc<EventLoopHandle<S::Visitor>>>>,
    /// The account of the address for which the thread sleeps, or has left its event loop.
    asleep: RefCell<Option<Arc<Account>>>,
    handoff: Handoff<S::Visitor>,
}

/// A connection whose calls have slow halves; the connection may have ended.
struct PendingConnection<'a, V> {
    job: Job<V>,
    served: Result<After, CloseReason>,
    lates: Vec<Pending<'a>>,
}

impl<S: Service> Worker<S> {
    fn new(shared: Arc<SharedState<S>>) -> Self {
        let (event_loop, handle, parked, asleep) = Default::default();
        Self { shared, event_loop, handle, parked, asleep, handoff: Handoff::new() }
    }

    fn run(
        &self,
        event_loop: Box<EventLoop<S::Visitor>>,
        replies: &mut Encoder,
        shared: &SharedState<S>,
    ) {
        let handle = Arc::clone(&event_loop.handle);
        self.event_loop.replace(Some(event_loop));
        self.handle.replace(Some(Arc::clone(&handle)));
        while self.event_loop.borrow().as_ref().is_some_and(|event_loop| !event_loop.is_over()) {
            self.guarded_round(&handle, replies, shared);
        }
        if self.event_loop.take().is_some() {
            shared.pool.event_loop_ended();
        }
    }

    /// Runs a round. If it panics because of a bug in the server itself, only the connection that
    /// was being served is lost.
    fn guarded_round(
        &self,
        handle: &EventLoopHandle<S::Visitor>,
        replies: &mut Encoder,
        shared: &SharedState<S>,
    ) {
        let round = catch_unwind(AssertUnwindSafe(|| self.round(handle, replies, shared)));
        if round.is_err() {
            tracing::error!("a worker panicked; its connections are lost");
            handle.counters.panics.add(1);
            self.handoff.clear();
            *replies = Encoder::new();
        }
    }

    /// Serves every connection that is ready, and executes the slow halves of their calls together
    /// at the end.
    fn round(
        &self,
        handle: &EventLoopHandle<S::Visitor>,
        replies: &mut Encoder,
        shared: &SharedState<S>,
    ) {
        let mut held = Vec::new();
        self.with_event_loop(EventLoop::wait);
        while let Some(Some(job)) =
            self.with_event_loop(|event_loop| event_loop.next_job(shared.seconds()))
        {
            let (token, peer, mut lates) = (job.token, job.connection.peer, Vec::new());
            match self.turn(handle, shared, job, (&mut *replies, &mut lates)).serve() {
                Served::HandedOff(handed_off) => {
                    self.pay(handle, (handed_off, peer), lates, replies)
                }
                Served::Here(connection, served) if lates.is_empty() => {
                    self.settle(handle, Job { token, connection }, served);
                }
                Served::Here(connection, served) => {
                    held.push(PendingConnection { job: Job { token, connection }, served, lates });
                }
            }
        }
        if !held.is_empty() {
            self.finish(handle, replies, shared, held);
        }
    }

    fn turn<'t, 'a>(
        &'t self,
        handle: &'t EventLoopHandle<S::Visitor>,
        shared: &'a SharedState<S>,
        Job { token, connection }: Job<S::Visitor>,
        (replies, lates): (&'t mut Encoder, &'t mut Vec<Pending<'a>>),
    ) -> ConnectionIo<'t, 'a, S> {
        ConnectionIo {
            shared,
            counters: &handle.counters,
            handoff: &self.handoff,
            replies,
            token,
            visitor: Arc::clone(&connection.visitor),
            connection: HeldConnection::new(connection),
            lates,
        }
    }

    fn finish<'a>(
        &self,
        handle: &EventLoopHandle<S::Visitor>,
        replies: &mut Encoder,
        shared: &'a SharedState<S>,
        held: Vec<PendingConnection<'a, S::Visitor>>,
    ) {
        handle.counters.late_rounds.add(1);
        let finished: Vec<_> = blocking(|| {
            let finish = |held: PendingConnection<'a, S::Visitor>| {
                let PendingConnection { job, served, mut lates } = held;
                let token = job.token;
                let turn = self.turn(handle, shared, job, (&mut *replies, &mut lates));
                let (connection, served) = turn.finish_lates(served)?;
                Some((Job { token, connection }, served))
            };
            held.into_iter().filter_map(finish).collect()
        });
        for (job, served) in finished {
            self.settle(handle, job, served);
        }
    }

    /// Passes the replies of a call, and those of its slow halves, to the connection that was
    /// handed off meanwhile.
    fn pay(
        &self,
        handle: &EventLoopHandle<S::Visitor>,
        (handed_off, peer): (HandedOff, SocketAddr),
        lates: Vec<Pending<'_>>,
        replies: &mut Encoder,
    ) {
        if !lates.is_empty() {
            let finish = |pending: Pending<'_>| pending.finish(peer, replies, &handle.counters);
            blocking(|| lates.into_iter().for_each(finish));
            handed_off.add_service(take_service_nanoseconds());
        }
        let mut owed = Some(handed_off.owed(replies));
        replies.clear(REPLY_BYTES_KEPT);
        forget_time();
        self.with_event_loop(|event_loop| owed.take().map(|owed| event_loop.owed(owed)));
        if let Some(owed) = owed {
            handle.deliver(Message::ReturnedReplies(owed), &self.shared.pool);
        }
    }

    /// Returns a connection to its event loop, whichever thread runs that now, or ends it.
    fn settle(
        &self,
        handle: &EventLoopHandle<S::Visitor>,
        job: Job<S::Visitor>,
        served: Result<After, CloseReason>,
    ) {
        let Job { token, mut connection } = job;
        let watched = served
            .and_then(|after| watch_if_backlogged(handle, token, &mut connection).map(|()| after));
        let after = match watched {
            Ok(after) => after,
            Err(reason) => {
                reason.tell(connection.peer, &handle.counters);
                drop(connection);
                if self.with_event_loop(|event_loop| event_loop.gone(token)).is_none() {
                    handle.deliver(Message::Gone(token), &self.shared.pool);
                }
                return;
            }
        };
        let mut connection = Some(connection);
        self.with_event_loop(|event_loop| {
            if let Some(connection) = connection.take() {
                event_loop.settle(token, connection, after);
            }
        });
        if let Some(connection) = connection {
            handle.deliver(Message::Back { token, connection, after }, &self.shared.pool);
        }
    }

    /// Notes that the thread has its event loop again, or is free.
    fn wake(&self) {
        if let Some(account) = self.asleep.take() {
            account.sleepers.end();
        }
    }

    /// Passes the connection of the running call to the thread that runs its event loop, if the
    /// connection should not wait for the call.
    fn pass_on(&self, why: WaitFor) {
        let handle = self.handle.borrow();
        let Some(handle) = handle.as_ref().filter(|_| self.handoff.is_worth_handing_off(why))
        else {
            return;
        };
        if let Some(Job { token, connection }) = self.handoff.hand_off() {
            let back = Message::Back { token, connection, after: After::Again };
            handle.deliver(back, &self.shared.pool);
        }
    }

    fn with_event_loop<T>(&self, what: impl FnOnce(&mut EventLoop<S::Visitor>) -> T) -> Option<T> {
        self.event_loop.borrow_mut().as_deref_mut().map(what)
    }
}

impl<S: Service> BlockHook for Worker<S> {
    fn leave(&self, why: WaitFor) {
        let Some(mut event_loop) = self.event_loop.take() else { return self.pass_on(why) };
        let handle = Arc::clone(&event_loop.handle);
        let account = self.handoff.account();
        account.iter().for_each(|account| account.sleepers.begin());
        self.asleep.replace(account);
        let lends = self.handoff.is_worth_handing_off(why);
        let event_loop = if event_loop.has_others() || lends {
            // The connection may be served here before this call is done.
            if let Some(Job { token, connection }) = self.handoff.hand_off() {
                event_loop.settle(token, connection, After::Again);
            }
            match self.shared.pool.run(event_loop) {
                Ok(()) => {
                    handle.counters.hand_overs.add(1);
                    return;
                }
                Err(event_loop) => event_loop,
            }
        } else {
            event_loop
        };
        handle.park(event_loop, &self.shared.pool);
        self.parked.replace(Some(handle));
    }

    fn resume(&self) {
        let Some(handle) = self.parked.take() else { return };
        if let Some(event_loop) = handle.unpark() {
            self.event_loop.replace(Some(event_loop));
            self.wake();
        }
    }
}

/// Turns on events for room in the socket if replies wait, and off otherwise, to avoid needless
/// wake-ups.
fn watch_if_backlogged<V>(
    handle: &EventLoopHandle<V>,
    token: usize,
    connection: &mut Connection<V>,
) -> Result<(), CloseReason> {
    let waits = connection.backlog.is_some();
    if waits != connection.watched {
        handle
            .set_interest(connection.socket(), token, waits)
            .map_err(|error| CloseReason::Broken(error.into()))?;
        connection.watched = waits;
        connection.is_unheard = false;
    }
    Ok(())
}
