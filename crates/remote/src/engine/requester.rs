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

/// The running engine of one mount; its threads end when this is dropped.
pub(crate) struct ClientEngine<M: Machine>(Arc<SharedEngine<M>>);

/// The reason why a request has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// The calling thread was interrupted.
    Interrupted,
    /// The bytes in flight stayed at their limit for as long as calls are tried (`soft`). The
    /// request was not sent.
    NoRoom,
}

/// The reason why an engine did not start.
#[derive(Debug)]
pub(crate) enum StartFailure {
    /// The system refused to create a thread.
    Threads(io::Error),
    /// No connection could be made.
    Unreachable(io::Error),
    /// The server did not answer in time.
    NoAnswer,
    /// The server refused the client.
    Refused(MountFailure),
}

impl<M: Machine + 'static> ClientEngine<M> {
    /// Starts the threads, and waits until the server has accepted the client.
    ///
    /// # Errors
    /// [`StartFailure`], at the latest after `patience`.
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

    /// Performs a request, and charges `bytes` to the bytes in flight.
    ///
    /// # Errors
    /// [`Unanswered::Interrupted`]: the request may or may not have been executed.
    /// [`Unanswered::NoRoom`]: it was not executed.
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

    /// Performs a small request at once, whatever the bytes in flight. If the thread is
    /// interrupted, the request continues and the closure that `then` returns handles its outcome.
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

    /// Performs a request without waiting for it.
    pub(crate) fn follow_up(&self, next: FollowUp<M>) {
        self.0.follow_up(next);
    }

    /// Returns the next event; waits for one for at most `patience`.
    pub(crate) fn poll_event(&self, patience: Duration) -> Option<StateEvent> {
        self.0.events.next(patience)
    }

    /// Calls `work` with the locked machine, and carries out its outputs.
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
