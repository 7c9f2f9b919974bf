use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;

use comity_vfs::Interrupt;

use super::aftermath::{Aftermath, FollowUp};
use super::alarm::{Alarm, now};
use super::events::EventQueue;
use super::requester::Unanswered;
use super::send_queue::{Flushed, SendQueue};
use super::waiter::Waiter;
use crate::calls::{LinkAction, LinkPlace};
use crate::limits::IN_FLIGHT_BYTES_MAX;
use crate::machine::{Machine, MachineOutput, MountFailure, Notice};
use crate::transport::{TlsRefusal, Transport};

/// The state that the threads of one mount share.
pub(super) struct SharedEngine<M: Machine> {
    state: Mutex<EngineState<M>>,
    /// Signalled when the server has accepted or refused the client.
    introduced: Condvar,
    pub(super) links: Vec<LinkShell>,
    pub(super) alarm: Alarm,
    pub(super) transport: Box<dyn Transport>,
    pub(super) events: EventQueue,
    /// True once the mount has ended.
    is_over: AtomicBool,
    /// True while the queue holds records whose sender was interrupted.
    needs_flush: AtomicBool,
}

struct EngineState<M: Machine> {
    machine: M,
    waiters: HashMap<u64, Arc<Waiter<M::Outcome>>>,
    /// For each request without a waiting caller: the closure that handles its outcome.
    aftermaths: HashMap<u64, Aftermath<M>>,
    /// Threads that wait for the bytes in flight to fall.
    crowd: VecDeque<Thread>,
    introduction: Option<Result<(), MountFailure>>,
    /// The error of the last attempt to connect.
    last_error: Option<std::io::Error>,
}

/// The shell's part of one connection.
#[derive(Default)]
pub(super) struct LinkShell {
    pub(super) queue: SendQueue,
    order: Mutex<Option<LinkPlace>>,
    ordered: Condvar,
}

impl<M: Machine> SharedEngine<M> {
    pub(super) fn new(machine: M, connections: usize, transport: Box<dyn Transport>) -> Self {
        let state = EngineState {
            machine,
            waiters: HashMap::new(),
            aftermaths: HashMap::new(),
            crowd: VecDeque::new(),
            introduction: None,
            last_error: None,
        };
        Self {
            state: Mutex::new(state),
            introduced: Condvar::new(),
            links: (0..connections).map(|_| LinkShell::default()).collect(),
            alarm: Alarm::default(),
            transport,
            events: EventQueue::default(),
            is_over: AtomicBool::new(false),
            needs_flush: AtomicBool::new(false),
        }
    }

    /// Calls `work` with the locked machine, and then carries out the machine's outputs.
    pub(super) fn drive<T>(&self, work: impl FnOnce(&mut M, Duration) -> T) -> T {
        let mut state = self.state();
        let now = now();
        let done = work(&mut state.machine, now);
        let mut touched = 0_u32;
        while let Some(output) = state.machine.poll_output(now) {
            touched |= self.obey(&mut state, output);
        }
        let at = state.machine.poll_timeout();
        state.admit_next();
        drop(state);
        self.alarm.set(at);
        self.flush(touched);
        done
    }

    /// Carries out an output; returns the connections whose queues must be flushed, as bits.
    fn obey(&self, state: &mut EngineState<M>, output: MachineOutput<M::Outcome>) -> u32 {
        match output {
            MachineOutput::Link(LinkAction::Send(place, record)) => {
                if let Some(link) = self.links.get(place.link) {
                    link.queue.push(place.generation, record);
                    return 1 << place.link;
                }
            }
            MachineOutput::Link(LinkAction::Connect(place)) => self.order(place),
            MachineOutput::Link(LinkAction::Disconnect(place)) => {
                if let Some(link) = self.links.get(place.link) {
                    link.queue.close(place.generation);
                }
            }
            MachineOutput::Done(id, outcome) => state.finish(id, outcome),
            MachineOutput::Ready => self.introduction_ended(state, Ok(())),
            MachineOutput::Failed(failure) => self.introduction_ended(state, Err(failure)),
            MachineOutput::Note(notice) => self.log(&notice),
            MachineOutput::Event(event) => self.events.push(event),
        }
        0
    }

    fn introduction_ended(&self, state: &mut EngineState<M>, how: Result<(), MountFailure>) {
        state.introduction.get_or_insert(how);
        self.introduced.notify_all();
    }

    /// Waits until the server has accepted the client.
    ///
    /// # Errors
    /// The refusal, or the last error of a connection; `None` if there was neither within
    /// `patience`.
    pub(super) fn wait_for_introduction(
        &self,
        patience: Duration,
    ) -> Result<(), Option<Result<MountFailure, std::io::Error>>> {
        let is_open = |state: &mut EngineState<M>| {
            state.introduction.is_none() && !state.last_error.as_ref().is_some_and(is_refusal)
        };
        let waited = self.introduced.wait_timeout_while(self.state(), patience, is_open);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        match state.introduction {
            Some(Ok(())) => Ok(()),
            Some(Err(failure)) => Err(Some(Ok(failure))),
            None => Err(state.last_error.take().map(Err)),
        }
    }

    /// Submits a request when the bytes in flight leave room for `bytes`.
    pub(super) fn submit(
        &self,
        bytes: usize,
        request: M::Request,
        waiter: &Arc<Waiter<M::Outcome>>,
    ) -> Result<u64, Unanswered> {
        self.wait_for_room(bytes)?;
        Ok(self.submit_at_once(request, waiter))
    }

    /// Submits a request without waiting for room.
    pub(super) fn submit_at_once(
        &self,
        request: M::Request,
        waiter: &Arc<Waiter<M::Outcome>>,
    ) -> u64 {
        let mut state = self.state();
        let id = state.machine.submit(now(), request);
        state.waiters.insert(id, Arc::clone(waiter));
        drop(state);
        self.drive(|_, _| ());
        id
    }

    fn wait_for_room(&self, bytes: usize) -> Result<(), Unanswered> {
        let began = now();
        loop {
            let mut state = self.state();
            let in_flight = state.machine.bytes_in_flight();
            if in_flight == 0 || in_flight + bytes <= IN_FLIGHT_BYTES_MAX {
                return Ok(());
            }
            let patience = state.machine.patience();
            state.crowd.push_back(thread::current());
            drop(state);
            let left = patience.map(|patience| (began + patience).saturating_sub(now()));
            let end = match left {
                _ if Interrupt::is_raised() => Some(Unanswered::Interrupted),
                Some(Duration::ZERO) => Some(Unanswered::NoRoom),
                _ => None,
            };
            if let Some(end) = end {
                // A thread that was woken but gives up must wake the next one.
                self.drive(|_, _| ());
                return Err(end);
            }
            left.map_or_else(thread::park, thread::park_timeout);
        }
    }

    /// Notes that nobody waits for a request any more.
    pub(super) fn forsake(&self, id: u64) {
        self.state().waiters.remove(&id);
        self.drive(|machine, _| machine.forsake(id));
    }

    /// Notes that the caller of a request was interrupted: `then` handles the outcome instead.
    pub(super) fn hand_over(&self, id: u64, waiter: &Waiter<M::Outcome>, then: Aftermath<M>) {
        let mut state = self.state();
        if state.waiters.remove(&id).is_some() {
            state.aftermaths.insert(id, then);
            return;
        }
        drop(state);
        if let Some(next) = waiter.take().and_then(then) {
            self.follow_up(next);
        }
    }

    /// Performs a request without waiting for it.
    pub(super) fn follow_up(&self, next: FollowUp<M>) {
        self.state().follow_up(next);
        self.drive(|_, _| ());
    }

    /// Flushes the queues of these connections.
    fn flush(&self, touched: u32) {
        for (at, link) in self.links.iter().enumerate() {
            if touched & 1 << at != 0 && link.queue.flush() == Flushed::Interrupted {
                self.needs_flush.store(true, Ordering::SeqCst);
                self.alarm.wake();
            }
        }
    }

    /// Sends the records of interrupted threads.
    pub(super) fn flush_left(&self) {
        if self.needs_flush.swap(false, Ordering::SeqCst) {
            self.flush(u32::MAX);
        }
    }

    fn order(&self, place: LinkPlace) {
        if let Some(link) = self.links.get(place.link) {
            *link.order.lock().unwrap_or_else(PoisonError::into_inner) = Some(place);
            link.ordered.notify_all();
        }
    }

    /// Waits for an order to connect; returns `None` when the mount has ended.
    pub(super) fn next_order(&self, link: &LinkShell) -> Option<LinkPlace> {
        let guard = link.order.lock().unwrap_or_else(PoisonError::into_inner);
        let is_idle = |order: &mut Option<LinkPlace>| order.is_none() && !self.is_over();
        let waited = link.ordered.wait_while(guard, is_idle);
        waited.unwrap_or_else(PoisonError::into_inner).take().filter(|_| !self.is_over())
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Ends all threads of the mount.
    pub(super) fn end(&self) {
        self.is_over.store(true, Ordering::SeqCst);
        for link in &self.links {
            link.queue.close_any();
            let order = link.order.lock().unwrap_or_else(PoisonError::into_inner);
            link.ordered.notify_all();
            drop(order);
        }
        self.alarm.wake();
        self.events.end();
    }

    /// Remembers why no connection could be made, and logs each new TLS refusal once.
    pub(super) fn note_error(&self, error: std::io::Error) {
        let server = self.transport.peer();
        let mut state = self.state();
        let is_told = state.last_error.as_ref().is_some_and(|last| is_same(last, &error));
        match TlsRefusal::behind(&error) {
            Some(refusal) if !is_told => tracing::warn!(server, "{refusal}; it is tried again"),
            _ => tracing::debug!(server, %error, "no connection"),
        }
        state.last_error = Some(error);
        self.introduced.notify_all();
    }

    fn log(&self, notice: &Notice) {
        let server = self.transport.peer();
        match notice {
            Notice::RespondsAgain | Notice::Reclaimed(_) => tracing::info!(server, "{notice}"),
            _ => tracing::warn!(server, "{notice}"),
        }
    }

    fn state(&self) -> MutexGuard<'_, EngineState<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Machine> EngineState<M> {
    /// Notes that a request has ended: passes the outcome to its waiter or its closure.
    fn finish(&mut self, id: u64, outcome: M::Outcome) {
        if let Some(waiter) = self.waiters.remove(&id) {
            waiter.give(outcome);
        } else if let Some(then) = self.aftermaths.remove(&id)
            && let Some(next) = then(outcome)
        {
            self.follow_up(next);
        }
    }

    fn follow_up(&mut self, next: FollowUp<M>) {
        let id = self.machine.submit(now(), next.request);
        self.aftermaths.insert(id, next.then);
    }

    /// Wakes the next thread that waits for room, if there is room.
    fn admit_next(&mut self) {
        if self.machine.bytes_in_flight() < IN_FLIGHT_BYTES_MAX
            && let Some(thread) = self.crowd.pop_front()
        {
            thread.unpark();
        }
    }
}

fn is_refusal(error: &std::io::Error) -> bool {
    TlsRefusal::behind(error).is_some()
}

/// Returns whether both errors are the same TLS refusal.
fn is_same(last: &std::io::Error, error: &std::io::Error) -> bool {
    TlsRefusal::behind(last) == TlsRefusal::behind(error)
}
