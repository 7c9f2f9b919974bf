use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::admission::Admission;
use crate::budget::Budget;
use crate::counters::{Counter, ShellNumbers};
use crate::crew::Crew;
use crate::limits::SLEEPERS_SHARE;
use crate::post::{Letter, Post};
use crate::service::Service;
use crate::settings::Settings;

/// What all threads of a server share.
pub(crate) struct Floor<S: Service> {
    pub(crate) service: S,
    pub(crate) settings: Settings,
    pub(crate) budget: Arc<Budget>,
    pub(crate) admission: Arc<Admission>,
    pub(crate) crew: Crew<S::Visitor>,
    pub(crate) posts: Vec<Arc<Post<S::Visitor>>>,
    pub(crate) accepted: Counter,
    pub(crate) refused: Counter,
    seconds: AtomicU32,
}

impl<S: Service> Floor<S> {
    pub(crate) fn new(
        service: S,
        settings: Settings,
        posts: Vec<Arc<Post<S::Visitor>>>,
        crew: Crew<S::Visitor>,
    ) -> Self {
        let Settings { connections_max, connections_per_address_max, .. } = settings;
        let budget = Arc::new(Budget::new(settings.buffered_bytes_max));
        let admission =
            Admission::new(connections_max, connections_per_address_max, Arc::clone(&budget));
        Self {
            service,
            budget,
            admission: Arc::new(admission),
            settings,
            crew,
            posts,
            accepted: Counter::default(),
            refused: Counter::default(),
            seconds: AtomicU32::new(0),
        }
    }

    /// Threads that may sleep for one client.
    pub(crate) fn sleepers_max(&self) -> usize {
        let sleepers = self.settings.threads_max.saturating_sub(self.posts.len());
        (sleepers / SLEEPERS_SHARE).max(1)
    }

    /// Seconds of the server's life; the only clock of its desks, and free.
    pub(crate) fn seconds(&self) -> u32 {
        self.seconds.load(Ordering::Relaxed)
    }

    /// Time has come to `seconds`: every desk with connections looks for those whose time is up.
    pub(crate) fn tick(&self, seconds: u32) {
        self.seconds.store(seconds, Ordering::Relaxed);
        self.service.dispatcher().tick(seconds);
        for post in &self.posts {
            if post.connections.load(Ordering::Relaxed) > 0 {
                post.deliver(Letter::Tick, &self.crew);
            }
        }
    }

    /// Tells every desk.
    pub(crate) fn tell(&self, letter: impl Fn() -> Letter<S::Visitor>) {
        for post in &self.posts {
            post.deliver(letter(), &self.crew);
        }
    }

    pub(crate) fn numbers(&self) -> ShellNumbers {
        let mut numbers = ShellNumbers {
            accepted: self.accepted.get(),
            refused: self.refused.get(),
            replayed: self.service.dispatcher().repeats(),
            connections: self.admission.total() as u64,
            buffered_bytes: self.budget.used() as u64,
            threads: self.crew.threads() as u64,
            ..ShellNumbers::default()
        };
        self.posts.iter().for_each(|post| numbers.add(&post.counters));
        numbers
    }
}
