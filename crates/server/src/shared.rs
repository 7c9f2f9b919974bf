use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::admission::Admission;
use crate::counters::{Counter, ServerStats};
use crate::event_loop::{EventLoopHandle, LoopPool, Message};
use crate::handshake_slots::HandshakeSlots;
use crate::memory_budget::MemoryBudget;
use crate::service::Service;
use crate::settings::Settings;

/// The state that all threads of a server share.
pub(crate) struct SharedState<S: Service> {
    pub(crate) service: S,
    pub(crate) settings: Settings,
    pub(crate) budget: Arc<MemoryBudget>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) pool: LoopPool<S::Visitor>,
    pub(crate) handles: Vec<Arc<EventLoopHandle<S::Visitor>>>,
    pub(crate) handshakes: HandshakeSlots,
    pub(crate) accepted: Counter,
    pub(crate) refused: Counter,
    seconds: AtomicU32,
}

impl<S: Service> SharedState<S> {
    pub(crate) fn new(
        service: S,
        settings: Settings,
        handles: Vec<Arc<EventLoopHandle<S::Visitor>>>,
        pool: LoopPool<S::Visitor>,
    ) -> Self {
        let Settings { connections_max, connections_per_address_max, .. } = settings;
        let budget = Arc::new(MemoryBudget::new(settings.buffered_bytes_max));
        let admission =
            Admission::new(connections_max, connections_per_address_max, Arc::clone(&budget));
        Self {
            service,
            budget,
            admission: Arc::new(admission),
            settings,
            pool,
            handshakes: HandshakeSlots::new(handles.len()),
            handles,
            accepted: Counter::default(),
            refused: Counter::default(),
            seconds: AtomicU32::new(0),
        }
    }

    /// Returns the number of threads that may sleep, for all clients together.
    pub(crate) fn sleepers_max(&self) -> usize {
        self.settings.threads_max.saturating_sub(self.handles.len())
    }

    /// Returns the seconds since the server started; event loops use no other clock, and reading it
    /// costs no system call.
    pub(crate) fn seconds(&self) -> u32 {
        self.seconds.load(Ordering::Relaxed)
    }

    /// Sets the time to `seconds`: every event loop with connections then closes those whose time
    /// limit has passed.
    pub(crate) fn tick(&self, seconds: u32) {
        self.seconds.store(seconds, Ordering::Relaxed);
        self.service.dispatcher().tick(seconds);
        for handle in &self.handles {
            if handle.connections.load(Ordering::Relaxed) > 0 {
                handle.deliver(Message::Tick, &self.pool);
            }
        }
    }

    /// Sends a message to every event loop.
    pub(crate) fn broadcast(&self, message: impl Fn() -> Message<S::Visitor>) {
        for handle in &self.handles {
            handle.deliver(message(), &self.pool);
        }
    }

    pub(crate) fn stats(&self) -> ServerStats {
        let mut stats = ServerStats {
            accepted: self.accepted.get(),
            refused: self.refused.get(),
            replayed: self.service.dispatcher().repeats(),
            connections: self.admission.total() as u64,
            by_channel: self.admission.by_channel().map(|count| count as u64),
            buffered_bytes: self.budget.used() as u64,
            threads: self.pool.threads() as u64,
            ..ServerStats::default()
        };
        self.handles.iter().for_each(|handle| stats.add(&handle.counters));
        stats
    }
}
