//! What a thread of the crew does: it runs a desk, round after round, until it ends or had to be
//! left to another.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use crate::blocking::{self, Seated, blocking};
use crate::connection::Connection;
use crate::desk::{Desk, Job};
use crate::farewell::Farewell;
use crate::floor::Floor;
use crate::post::{After, Letter, Post};
use crate::service::Service;
use crate::turn::{Pending, Tools, Turn};

/// Runs desks until the crew needs this thread no more.
pub(crate) fn work<S: Service>(floor: &Arc<Floor<S>>) {
    let seat = Rc::new(Seat::new(Arc::clone(floor)));
    blocking::sit(Some(Rc::clone(&seat) as Rc<dyn Seated>));
    let mut tools = Tools::new();
    while let Some(desk) = floor.crew.next_desk() {
        seat.run(desk, &mut tools, floor);
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
}

/// A connection whose calls have slow halves; it may have ended.
struct Held<'a, V> {
    job: Job<V>,
    served: Result<After, Farewell>,
    lates: Vec<Pending<'a>>,
}

impl<S: Service> Seat<S> {
    fn new(floor: Arc<Floor<S>>) -> Self {
        Self { floor, desk: RefCell::default(), parked: RefCell::default() }
    }

    fn run(&self, desk: Box<Desk<S::Visitor>>, tools: &mut Tools, floor: &Floor<S>) {
        let post = Arc::clone(&desk.post);
        self.desk.replace(Some(desk));
        while self.desk.borrow().as_ref().is_some_and(|desk| !desk.is_over()) {
            self.guarded_round(&post, tools, floor);
        }
        if self.desk.take().is_some() {
            floor.crew.desk_ended();
        }
    }

    /// A round; should it panic, by a fault of the shell itself, the connection that was being
    /// served is lost and the others are not.
    fn guarded_round(&self, post: &Post<S::Visitor>, tools: &mut Tools, floor: &Floor<S>) {
        let round = catch_unwind(AssertUnwindSafe(|| self.round(post, tools, floor)));
        if round.is_err() {
            tracing::error!("a worker panicked; the connections it held are lost");
            post.counters.panics.add(1);
            *tools = Tools::new();
        }
    }

    /// Serves every connection that is ready; the slow halves of their calls together at the end.
    fn round(&self, post: &Post<S::Visitor>, tools: &mut Tools, floor: &Floor<S>) {
        let mut held = Vec::new();
        self.with_desk(Desk::wait);
        while let Some(Some(mut job)) = self.with_desk(|desk| desk.next_job(floor.seconds())) {
            let mut lates = Vec::new();
            let connection = &mut *job.connection;
            let counters = &post.counters;
            let served =
                Turn { floor, counters, tools: &mut *tools, connection, lates: &mut lates }.serve();
            if lates.is_empty() {
                self.settle(post, job, served);
            } else {
                held.push(Held { job, served, lates });
            }
        }
        if !held.is_empty() {
            self.finish(post, tools, floor, held);
        }
    }

    fn finish<'a>(
        &self,
        post: &Post<S::Visitor>,
        tools: &mut Tools,
        floor: &'a Floor<S>,
        held: Vec<Held<'a, S::Visitor>>,
    ) {
        post.counters.late_rounds.add(1);
        let finished: Vec<_> = blocking(|| {
            let finish = |held: Held<'a, S::Visitor>| {
                let Held { mut job, served, mut lates } = held;
                let connection = &mut *job.connection;
                let counters = &post.counters;
                let mut turn =
                    Turn { floor, counters, tools: &mut *tools, connection, lates: &mut lates };
                let finished = turn.finish_lates(served);
                (job, finished)
            };
            held.into_iter().map(finish).collect()
        });
        for (job, served) in finished {
            self.settle(post, job, served);
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

    fn with_desk<T>(&self, what: impl FnOnce(&mut Desk<S::Visitor>) -> T) -> Option<T> {
        self.desk.borrow_mut().as_deref_mut().map(what)
    }
}

impl<S: Service> Seated for Seat<S> {
    fn leave(&self) {
        let Some(desk) = self.desk.take() else { return };
        let post = Arc::clone(&desk.post);
        let desk = if desk.has_others() {
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
        if let Some(post) = self.parked.take() {
            self.desk.replace(post.unpark());
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
