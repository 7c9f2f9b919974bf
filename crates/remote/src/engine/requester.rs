use std::io;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::aftermath::{Aftermath, FollowUp};
use super::link_thread;
use super::shared::SharedEngine;
use super::waiter::Waiter;
use crate::machine::StateEvent;
use crate::machine::{Machine, MountFailure};
use crate::transport::Transport;

/// The threads of one mount; they end when this is dropped.
pub(crate) struct ClientEngine<M: Machine>(Arc<SharedEngine<M>>);

/// Why a request has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The calling thread was interrupted.
    Interrupted,
    /// There was no memory for the request for as long as calls are tried (`soft`). It was not
    /// sent.
    NoRoom,
}

/// Why an engine does not start.
#[derive(Debug)]
pub(crate) enum StartFailure {
    /// The system gives no threads.
    Threads(io::Error),
    /// No connection could be made.
    Unreachable(io::Error),
    /// The server does not answer.
    NoAnswer,
    /// The server does not take the client.
    Refused(MountFailure),
}

impl<M: Machine + 'static> ClientEngine<M> {
    /// Starts the threads, and waits until the client is introduced to the server.
    ///
    /// # Errors
    /// [`StartFailure`], at the latest when `patience` ends.
    pub(crate) fn start(
        machine: M,
        connections: usize,
        transport: Box<dyn Transport>,
        patience: Duration,
    ) -> Result<Self, StartFailure> {
        let shared = Arc::new(SharedEngine::new(machine, connections, transport));
        let engine = Self(Arc::clone(&shared));
        for number in 0..connections {
            let shared = Arc::clone(&shared);
            spawn("nfs connection", move || link_thread::run(&shared, number))?;
        }
        let timed = Arc::clone(&shared);
        spawn("nfs timer", move || keep_time(&timed))?;
        shared.drive(|machine, now| machine.begin(now));
        match shared.wait_for_introduction(patience) {
            Ok(()) => Ok(engine),
            Err(Some(Ok(failure))) => Err(StartFailure::Refused(failure)),
            Err(Some(Err(error))) => Err(StartFailure::Unreachable(error)),
            Err(None) => Err(StartFailure::NoAnswer),
        }
    }

    /// Has a request done that takes so many bytes.
    ///
    /// # Errors
    /// [`Unanswered::Interrupted`]: the request may have been done or not.
    /// [`Unanswered::NoRoom`]: it was not.
    pub(crate) fn perform(
        &self,
        bytes: usize,
        request: M::Request,
    ) -> Result<M::Outcome, Unanswered> {
        let waiter = Arc::new(Waiter::here());
        let id = self.0.submit(bytes, request, &waiter)?;
        waiter.wait().ok_or_else(|| {
            self.0.forsake(id);
            Unanswered::Interrupted
        })
    }

    /// Has a small request done at once, whatever else is under way. If the thread is interrupted
    /// the request is not forsaken: what `then` returns takes in its outcome.
    ///
    /// # Errors
    /// [`Unanswered::Interrupted`].
    pub(crate) fn perform_to_the_end(
        &self,
        request: M::Request,
        then: &dyn Fn() -> Aftermath<M>,
    ) -> Result<M::Outcome, Unanswered> {
        let waiter = Arc::new(Waiter::here());
        let id = self.0.submit_at_once(request, &waiter);
        waiter.wait().ok_or_else(|| {
            self.0.hand_over(id, &waiter, then());
            Unanswered::Interrupted
        })
    }

    /// Has a request done for which nobody waits.
    pub(crate) fn follow_up(&self, next: FollowUp<M>) {
        self.0.follow_up(next);
    }

    /// The next event, if one comes while `patience` lasts.
    pub(crate) fn poll_event(&self, patience: Duration) -> Option<StateEvent> {
        self.0.events.next(patience)
    }

    /// Has the machine do something.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut M, Duration) -> T) -> T {
        self.0.drive(work)
    }
}

impl<M: Machine> Drop for ClientEngine<M> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), StartFailure> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(work);
    started.map(drop).map_err(StartFailure::Threads)
}

fn keep_time<M: Machine>(shared: &SharedEngine<M>) {
    while !shared.is_over() {
        shared.alarm.wait();
        shared.drive(|machine, now| machine.handle_timeout(now));
        shared.flush_left();
    }
}
