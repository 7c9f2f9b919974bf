//! A simulated server and its clients, reduced to their knowledge of directories.

use std::collections::{BTreeSet, HashMap};

use super::client_cache::{CachedDirectory, ClientCache, NameKnowledge};
use super::event::{Action, Actor, Event};
use super::policy::{Policy, PolicyName};
use super::simulated_calls::SimulatedCalls;
use crate::limits::NOTIFICATIONS_PER_CALL_MAX;

/// The parameters of a simulation.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The policy of the server.
    pub policy: PolicyName,
    /// The largest number of directories that a client caches.
    pub cached_directories: usize,
    /// The shortest and the longest time for which a client uses its cache without a delegation
    /// (`acdirmin` and `acdirmax` of nfs(5)), in microseconds.
    pub believed_microseconds: (u64, u64),
    /// The time for which the server collects changes before it notifies (CB_NOTIFY). Without it
    /// the server recalls delegations.
    pub notification_delay_microseconds: Option<u64>,
    /// Most delegations of all clients together.
    pub delegations_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: PolicyName::SecondAsk,
            cached_directories: 10_000,
            believed_microseconds: (30_000_000, 60_000_000),
            notification_delay_microseconds: None,
            delegations_max: 100_000,
        }
    }
}

/// Replays a trace; returns the calls that it caused.
#[must_use]
pub fn simulate(settings: Settings, events: &[Event]) -> SimulatedCalls {
    let mut simulation = Simulation {
        settings,
        policy: Policy::new(settings.policy),
        numbers: HashMap::new(),
        versions: HashMap::new(),
        changes: HashMap::new(),
        clients: HashMap::new(),
        holders: HashMap::new(),
        held: 0,
        batches: HashMap::new(),
        tally: SimulatedCalls::default(),
    };
    for event in events {
        simulation.deliver(event.at_microseconds);
        simulation.perform(event);
    }
    simulation.deliver(u64::MAX);
    simulation.tally
}

/// Changes that are sent to a client in one CB_NOTIFY.
#[derive(Debug, Default)]
struct Batch {
    due: u64,
    names: Vec<(String, bool)>,
}

struct Simulation {
    settings: Settings,
    policy: Policy,
    numbers: HashMap<String, u32>,
    /// The number of changes of each directory.
    versions: HashMap<u32, u64>,
    /// The number of the last change of each name in each directory.
    changes: HashMap<u32, HashMap<String, u64>>,
    clients: HashMap<u32, ClientCache>,
    /// The clients to which a directory is delegated.
    holders: HashMap<u32, BTreeSet<u32>>,
    held: usize,
    batches: HashMap<(u32, u32), Batch>,
    tally: SimulatedCalls,
}

impl Simulation {
    fn number(&mut self, directory: &str) -> u32 {
        if let Some(number) = self.numbers.get(directory) {
            return *number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(directory.to_owned(), number);
        number
    }

    fn perform(&mut self, event: &Event) {
        let now = event.at_microseconds;
        match (&event.action, event.actor) {
            (Action::Lookup { directory, name, found }, Actor::Client(client)) => {
                let directory = self.number(directory);
                self.look_up((client, directory), (name, *found), now);
            }
            (Action::List(directory), Actor::Client(client)) => {
                let directory = self.number(directory);
                self.list((client, directory), now);
            }
            (Action::Stat(directory), Actor::Client(client)) => {
                let directory = self.number(directory);
                self.stat((client, directory), now);
            }
            // Clients do not notice programs on the server that only read.
            (Action::Lookup { .. } | Action::List(_) | Action::Stat(_), Actor::Local) => {}
            (Action::Create { directory, name }, actor) => {
                self.change(actor, (directory, name, true), now);
            }
            (Action::Remove { directory, name }, actor) => {
                self.change(actor, (directory, name, false), now);
            }
            (Action::Rename { from, to }, actor) => {
                self.change(actor, (&from.0, &from.1, false), now);
                self.change(actor, (&to.0, &to.1, true), now);
            }
        }
    }

    fn look_up(&mut self, at: (u32, u32), (name, found): (&str, bool), now: u64) {
        self.tally.asked.lookups += 1;
        let known = if self.is_current(at, now) { self.cached(at).knows(name) } else { None };
        if let Some(known) = known {
            let is_stale = match known {
                NameKnowledge::Name(is_there) => is_there != found,
                NameKnowledge::Listing(version) => self.has_changed_since(at.1, name, version),
            };
            self.tally.stale_answers += u64::from(is_stale);
            return;
        }
        self.tally.calls.lookups += 1;
        self.cached(at).names.insert(name.to_owned(), found);
        self.refreshed(at, now);
    }

    fn stat(&mut self, at: (u32, u32), now: u64) {
        self.tally.asked.stats += 1;
        if !self.is_current(at, now) {
            self.tally.calls.getattrs += 1;
            self.refreshed(at, now);
        }
    }

    fn has_changed_since(&self, directory: u32, name: &str, version: u64) -> bool {
        let changes = self.changes.get(&directory);
        changes.and_then(|names| names.get(name)).is_some_and(|changed| *changed > version)
    }

    fn list(&mut self, at: (u32, u32), now: u64) {
        self.tally.asked.listings += 1;
        if self.is_current(at, now) && self.cached(at).is_complete {
            return;
        }
        self.tally.calls.readdirs += 1;
        let directory = self.cached(at);
        directory.names.retain(|_, is_there| *is_there);
        directory.is_complete = true;
        self.refreshed(at, now);
    }

    /// Returns whether the client may use its cache of a directory, after a call if one is needed.
    fn is_current(&mut self, at: (u32, u32), now: u64) -> bool {
        let (client, directory) = at;
        let (cache, most) =
            (self.clients.entry(client).or_default(), self.settings.cached_directories);
        let (cached, returned) = cache.used(directory, most);
        let (is_known, is_believed) =
            (cached.checked > 0 || cached.delegated, cached.is_believed(now));
        if let Some(returned) = returned {
            self.tally.calls.returns += 1;
            self.let_go((client, returned));
        }
        if !is_known {
            // The next call returns the attributes, too.
            return false;
        }
        if !is_believed {
            self.tally.calls.getattrs += 1;
            self.refreshed(at, now);
        }
        true
    }

    /// Updates the cache after a reply with the directory's change attribute.
    fn refreshed(&mut self, at: (u32, u32), now: u64) {
        let (least, longest) = self.settings.believed_microseconds;
        let version = self.versions.get(&at.1).copied().unwrap_or(0);
        let directory = self.cached(at);
        let is_same = directory.version == version;
        if !is_same {
            directory.forget();
        }
        directory.believed = match directory.believed {
            0 => least,
            believed if is_same && now >= directory.checked.saturating_add(believed) => {
                (2 * believed).min(longest)
            }
            believed if is_same => believed,
            _ => least,
        };
        (directory.version, directory.checked) = (version, now.max(1));
        if !directory.delegated {
            self.ask(at, now);
        }
    }

    /// Asks for a delegation together with a call that is made anyway.
    fn ask(&mut self, at: (u32, u32), now: u64) {
        if self.held >= self.settings.delegations_max || !self.policy.grants(now, at) {
            return;
        }
        if self.holders.entry(at.1).or_default().insert(at.0) {
            self.held += 1;
            self.tally.granted(self.held);
        }
        self.cached(at).delegated = true;
    }

    fn change(&mut self, actor: Actor, (directory, name, there): (&str, &str, bool), now: u64) {
        let directory = self.number(directory);
        self.tally.asked.changes += 1;
        let own = match actor {
            Actor::Client(client) => Some(client),
            Actor::Local => None,
        };
        let others: Vec<u32> =
            self.holders.get(&directory).into_iter().flatten().copied().collect();
        let others: Vec<u32> = others.into_iter().filter(|it| Some(*it) != own).collect();
        let mut waits = false;
        for client in others {
            waits |= !self.notify((client, directory), (name, there), now);
        }
        let version = self.versions.entry(directory).or_default();
        *version += 1;
        self.changes.entry(directory).or_default().insert(name.to_owned(), *version);
        let Some(client) = own else { return };
        self.tally.calls.changes += 1 + u64::from(waits);
        self.changed_itself((client, directory), (name, there), now);
    }

    /// Updates the cache of the client that made a change, if no other change came between.
    fn changed_itself(&mut self, at: (u32, u32), (name, there): (&str, bool), now: u64) {
        let version = self.versions.get(&at.1).copied().unwrap_or(0);
        let directory = self.cached(at);
        if directory.delegated || directory.version + 1 == version {
            directory.names.insert(name.to_owned(), there);
            directory.version = version;
        } else {
            directory.forget();
            (directory.version, directory.checked) = (version, now.max(1));
        }
    }

    /// Notifies a holder of a change: later and together with other changes, or by a recall now.
    /// Returns whether the change need not wait for the holder.
    fn notify(&mut self, at: (u32, u32), (name, there): (&str, bool), now: u64) -> bool {
        let Some(delay) = self.settings.notification_delay_microseconds else {
            self.recall(at, now);
            return false;
        };
        let batch = self.batches.entry(at).or_default();
        if batch.names.is_empty() {
            batch.due = now.saturating_add(delay);
        }
        batch.names.push((name.to_owned(), there));
        if batch.names.len() <= NOTIFICATIONS_PER_CALL_MAX {
            return true;
        }
        self.batches.remove(&at);
        self.recall(at, now);
        false
    }

    fn recall(&mut self, at: (u32, u32), now: u64) {
        self.tally.calls.recalls += 1;
        self.tally.calls.returns += 1;
        self.let_go(at);
        let directory = self.cached(at);
        (directory.delegated, directory.believed) = (false, 0);
        self.policy.recalled(now, at);
    }

    fn let_go(&mut self, (client, directory): (u32, u32)) {
        self.batches.remove(&(client, directory));
        if self.holders.get_mut(&directory).is_some_and(|holders| holders.remove(&client)) {
            self.held -= 1;
        }
    }

    /// Sends the notifications that are due.
    fn deliver(&mut self, now: u64) {
        let due = |(at, batch): (&(u32, u32), &Batch)| (batch.due <= now).then_some(*at);
        let due: Vec<_> = self.batches.iter().filter_map(due).collect();
        for at in due {
            let Some(batch) = self.batches.remove(&at) else { continue };
            self.tally.calls.notifications += 1;
            self.tally.notified += batch.names.len() as u64;
            let version = self.versions.get(&at.1).copied().unwrap_or(0);
            let directory = self.cached(at);
            directory.names.extend(batch.names);
            directory.version = version;
        }
    }

    fn cached(&mut self, (client, directory): (u32, u32)) -> &mut CachedDirectory {
        let cache = self.clients.entry(client).or_default();
        cache.used(directory, usize::MAX).0
    }
}
