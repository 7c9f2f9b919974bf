//! What a thread of the crew does: it runs a desk, round after round, until it ends or had to be
//! left to another.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use comity_xdr::Encoder;

use crate::blocking::{self, Seated, Why, blocking};
use crate::budget::Account;
use crate::connection::Connection;
use crate::desk::{Desk, Job};
use crate::farewell::Farewell;
use crate::floor::Floor;
use crate::limits::REPLY_BYTES_KEPT;
use crate::metrics::forget_time;
use crate::post::{After, Letter, Post};
use crate::service::Service;
use crate::tray::{InHand, Lent, Tray};
use crate::turn::{Pending, Served, Turn};

/// Runs desks until the crew needs this thread no more.
pub(crate) fn work<S: Service>(floor: &Arc<Floor<S>>) {
    let seat = Rc::new(Seat::new(Arc::clone(floor)));
    blocking::sit(Some(Rc::clone(&seat) as Rc<dyn Seated>));
    let mut replies = Encoder::new();
    while let Some(desk) = floor.crew.next_desk() {
        seat.run(desk, &mut replies, floor);
        seat.wake();
        floor.crew.is_free();
    }
    blocking::sit(None);
}

/// Where a thread sits. The desk is here unless it was left, so that another thread may own it.
struct Seat<S: Service> {
    floor: Arc<Floor<S>>,
    desk: RefCell<Option<Box<Desk<S::Visitor>>>>,
    /// Where the desk was left, if nobody else was needed at once.
    parked: RefCell<Option<Arc<Post<S::Visitor>>>>,
    /// For whom the thread sleeps, or has left its desk.
    asleep: RefCell<Option<Arc<Account>>>,
    tray: Tray<S::Visitor>,
}

/// A connection whose calls have slow halves; it may have ended.
struct Held<'a, V> {
    job: Job<V>,
    served: Result<After, Farewell>,
    lates: Vec<Pending<'a>>,
}

impl<S: Service> Seat<S> {
    fn new(floor: Arc<Floor<S>>) -> Self {
        let (desk, parked, asleep) = Default::default();
        Self { floor, desk, parked, asleep, tray: Tray::new() }
    }

    fn run(&self, desk: Box<Desk<S::Visitor>>, replies: &mut Encoder, floor: &Floor<S>) {
        let post = Arc::clone(&desk.post);
        self.desk.replace(Some(desk));
        while self.desk.borrow().as_ref().is_some_and(|desk| !desk.is_over()) {
            self.guarded_round(&post, replies, floor);
        }
        if self.desk.take().is_some() {
            floor.crew.desk_ended();
        }
    }

    /// A round; should it panic, by a fault of the shell itself, the connection that was being
    /// served is lost and the others are not.
    fn guarded_round(&self, post: &Post<S::Visitor>, replies: &mut Encoder, floor: &Floor<S>) {
        let round = catch_unwind(AssertUnwindSafe(|| self.round(post, replies, floor)));
        if round.is_err() {
            tracing::error!("a worker panicked; the connections it held are lost");
            post.counters.panics.add(1);
            self.tray.clear();
            *replies = Encoder::new();
        }
    }

    /// Serves every connection that is ready; the slow halves of their calls together at the end.
    fn round(&self, post: &Post<S::Visitor>, replies: &mut Encoder, floor: &Floor<S>) {
        let mut held = Vec::new();
        self.with_desk(Desk::wait);
        while let Some(Some(job)) = self.with_desk(|desk| desk.next_job(floor.seconds())) {
            let (token, peer, mut lates) = (job.token, job.connection.peer, Vec::new());
            match self.turn(post, floor, job, (&mut *replies, &mut lates)).serve() {
                Served::Lent(lent) => self.pay(post, (lent, peer), lates, replies),
                Served::Here(connection, served) if lates.is_empty() => {
                    self.settle(post, Job { token, connection }, served);
                }
                Served::Here(connection, served) => {
                    held.push(Held { job: Job { token, connection }, served, lates });
                }
            }
        }
        if !held.is_empty() {
            self.finish(post, replies, floor, held);
        }
    }

    fn turn<'t, 'a>(
        &'t self,
        post: &'t Post<S::Visitor>,
        floor: &'a Floor<S>,
        Job { token, connection }: Job<S::Visitor>,
        (replies, lates): (&'t mut Encoder, &'t mut Vec<Pending<'a>>),
    ) -> Turn<'t, 'a, S> {
        Turn {
            floor,
            counters: &post.counters,
            tray: &self.tray,
            replies,
            token,
            visitor: Arc::clone(&connection.visitor),
            connection: InHand::new(connection),
            lates,
        }
    }

    fn finish<'a>(
        &self,
        post: &Post<S::Visitor>,
        replies: &mut Encoder,
        floor: &'a Floor<S>,
        held: Vec<Held<'a, S::Visitor>>,
    ) {
        post.counters.late_rounds.add(1);
        let finished: Vec<_> = blocking(|| {
            let finish = |held: Held<'a, S::Visitor>| {
                let Held { job, served, mut lates } = held;
                let token = job.token;
                let turn = self.turn(post, floor, job, (&mut *replies, &mut lates));
                let (connection, served) = turn.finish_lates(served)?;
                Some((Job { token, connection }, served))
            };
            held.into_iter().filter_map(finish).collect()
        });
        for (job, served) in finished {
            self.settle(post, job, served);
        }
    }

    /// Sends the replies that stand in `replies` on their way to a connection that was lent while a
    /// call was done, and those of its slow halves.
    fn pay(
        &self,
        post: &Post<S::Visitor>,
        (lent, peer): (Lent, SocketAddr),
        lates: Vec<Pending<'_>>,
        replies: &mut Encoder,
    ) {
        if !lates.is_empty() {
            let finish = |pending: Pending<'_>| pending.finish(peer, replies, &post.counters);
            blocking(|| lates.into_iter().for_each(finish));
        }
        let mut owed = Some(lent.owed(replies));
        replies.clear(REPLY_BYTES_KEPT);
        forget_time();
        self.with_desk(|desk| owed.take().map(|owed| desk.owed(owed)));
        if let Some(owed) = owed {
            post.deliver(Letter::Owed(owed), &self.floor.crew);
        }
    }

    /// Gives a connection back to its desk, wherever that is now, or ends it.
    fn settle(
        &self,
        post: &Post<S::Visitor>,
        job: Job<S::Visitor>,
        served: Result<After, Farewell>,
    ) {
        let Job { token, mut connection } = job;
        let watched = served
            .and_then(|after| watch_if_backlogged(post, token, &mut connection).map(|()| after));
        let after = match watched {
            Ok(after) => after,
            Err(farewell) => {
                farewell.tell(connection.peer, &post.counters);
                drop(connection);
                if self.with_desk(|desk| desk.gone(token)).is_none() {
                    post.deliver(Letter::Gone(token), &self.floor.crew);
                }
                return;
            }
        };
        let mut connection = Some(connection);
        self.with_desk(|desk| {
            if let Some(connection) = connection.take() {
                desk.settle(token, connection, after);
            }
        });
        if let Some(connection) = connection {
            post.deliver(Letter::Back { token, connection, after }, &self.floor.crew);
        }
    }

    /// The thread has its desk again, or is free.
    fn wake(&self) {
        if let Some(account) = self.asleep.take() {
            account.sleepers.end();
        }
    }

    fn with_desk<T>(&self, what: impl FnOnce(&mut Desk<S::Visitor>) -> T) -> Option<T> {
        self.desk.borrow_mut().as_deref_mut().map(what)
    }
}

impl<S: Service> Seated for Seat<S> {
    fn leave(&self, why: Why) {
        let Some(mut desk) = self.desk.take() else { return };
        let post = Arc::clone(&desk.post);
        let account = self.tray.account();
        account.iter().for_each(|account| account.sleepers.begin());
        self.asleep.replace(account);
        let lends = self.tray.is_worth_lending(why);
        let desk = if desk.has_others() || lends {
            // Here it may be served before this call is done.
            self.tray.lend(&mut desk);
            match self.floor.crew.run(desk) {
                Ok(()) => {
                    post.counters.hand_overs.add(1);
                    return;
                }
                Err(desk) => desk,
            }
        } else {
            desk
        };
        post.park(desk, &self.floor.crew);
        self.parked.replace(Some(post));
    }

    fn resume(&self) {
        let Some(post) = self.parked.take() else { return };
        if let Some(desk) = post.unpark() {
            self.desk.replace(Some(desk));
            self.wake();
        }
    }
}

/// Replies that wait want to hear of room; nobody else should be woken by it.
fn watch_if_backlogged<V>(
    post: &Post<V>,
    token: usize,
    connection: &mut Connection<V>,
) -> Result<(), Farewell> {
    let waits = connection.backlog.is_some();
    if waits != connection.watched {
        post.watch(connection.socket(), token, waits)
            .map_err(|error| Farewell::Broken(error.into()))?;
        connection.watched = waits;
    }
    Ok(())
}
