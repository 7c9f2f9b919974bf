//! A simulated server and its clients, reduced to their knowledge of directories.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::client_cache::{CachedDirectory, ClientCache, KnownName};
use super::directory_tree::DirectoryTree;
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
        tree: DirectoryTree::new(events),
        clients: HashMap::new(),
        holders: HashMap::new(),
        held: 0,
        batches: HashMap::new(),
        given_up: HashSet::new(),
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

/// A client and a directory, by their numbers.
type CachedPlace = (u32, u32);

struct Simulation {
    settings: Settings,
    policy: Policy,
    tree: DirectoryTree,
    clients: HashMap<u32, ClientCache>,
    /// The clients to which a directory is delegated.
    holders: HashMap<u32, BTreeSet<u32>>,
    held: usize,
    batches: HashMap<CachedPlace, Batch>,
    /// Delegations that are not worth their notifications.
    given_up: HashSet<CachedPlace>,
    tally: SimulatedCalls,
}

impl Simulation {
    fn perform(&mut self, event: &Event) {
        let now = event.at_microseconds;
        match event.actor {
            Actor::Client(client) => self.perform_at(client, &event.action, now),
            Actor::Local => self.perform_locally(&event.action, now),
        }
    }

    fn perform_at(&mut self, client: u32, action: &Action, now: u64) {
        match action {
            Action::Lookup { directory, name, found } => {
                let at = (client, self.walk(client, directory, now));
                self.tree.observe(at.1, name, *found);
                self.look_up(at, name, now);
            }
            Action::List(directory) => {
                let at = (client, self.walk(client, directory, now));
                self.list(at, now);
            }
            Action::Stat(directory) => {
                self.tally.asked.stats += 1;
                let at = (client, self.walk(client, directory, now));
                self.fetch_unless_valid(at, now);
            }
            Action::Create { directory, name } | Action::Remove { directory, name } => {
                let at = (client, self.walk(client, directory, now));
                self.find(at, (name, None), now);
                self.tally.calls.changes += 1;
                let is_there = matches!(action, Action::Create { .. });
                self.change(Some(client), (at.1, name, is_there), now);
            }
            Action::Rename { from, to } => self.rename(client, (from, to), now),
        }
    }

    /// Performs a change of a program on the server. Clients do not notice programs there that only
    /// read.
    fn perform_locally(&mut self, action: &Action, now: u64) {
        let mut change = |directory: &str, name: &str, is_there| {
            let directory = self.tree.number(directory);
            self.change(None, (directory, name, is_there), now);
        };
        match action {
            Action::Lookup { .. } | Action::List(_) | Action::Stat(_) => {}
            Action::Create { directory, name } => change(directory, name, true),
            Action::Remove { directory, name } => change(directory, name, false),
            Action::Rename { from, to } => {
                change(&from.0, &from.1, false);
                change(&to.0, &to.1, true);
            }
        }
    }

    /// Looks up the components of a directory's path, as the kernel does each time.
    fn walk(&mut self, client: u32, path: &str, now: u64) -> u32 {
        let mut directory = self.tree.number("/");
        let mut place = String::new();
        for name in path.split('/').filter(|name| !name.is_empty()) {
            place = format!("{place}/{name}");
            let child = self.tree.number(&place);
            self.tree.observe(directory, name, true);
            self.find((client, directory), (name, Some(child)), now);
            directory = child;
        }
        directory
    }

    fn look_up(&mut self, at: CachedPlace, name: &str, now: u64) {
        self.tally.asked.lookups += 1;
        self.find(at, (name, None), now);
    }

    /// Finds a name: in the cache, or by a call. `child` is its directory, if it is one.
    fn find(&mut self, at: CachedPlace, (name, child): (&str, Option<u32>), now: u64) {
        let is_there = self.tree.is_there(at.1, name);
        let mut known = self.known(at, name, now);
        if known.is_none() && self.look_into(at, now) {
            known = self.known(at, name, now);
        }
        match (known, child) {
            (None, _) => self.call_lookup(at, (name, is_there, child), now),
            (Some(KnownName::Missing), _) => self.tally.stale_answers += u64::from(is_there),
            (Some(known), None) => {
                self.tally.stale_answers += u64::from(!is_there);
                self.tally.calls.getattrs += u64::from(known == KnownName::Changed);
                self.cached(at).names.insert(name.to_owned(), KnownName::There);
            }
            (Some(_), Some(child)) => self.fetch_unless_valid((at.0, child), now),
        }
    }

    /// Returns what the client knows about a name without a call.
    fn known(&mut self, at: CachedPlace, name: &str, now: u64) -> Option<KnownName> {
        let version = self.cached(at).version;
        let was_there = self.tree.was_there(at.1, name, version);
        let directory = self.used(at);
        if directory.is_valid(now) { directory.knows(name, was_there) } else { None }
    }

    fn call_lookup(
        &mut self,
        at: CachedPlace,
        (name, is_there, child): (&str, bool, Option<u32>),
        now: u64,
    ) {
        self.tally.calls.lookups += 1;
        self.policy.looked(now, at);
        if let Some(child) = child {
            self.note((at.0, child), now);
        }
        if is_there {
            self.note(at, now);
        }
        let directory = self.cached(at);
        if directory.version.is_some() {
            let known = if is_there { KnownName::There } else { KnownName::Missing };
            directory.names.insert(name.to_owned(), known);
            directory.may_search = true;
        }
    }

    fn fetch_unless_valid(&mut self, at: CachedPlace, now: u64) {
        if self.used(at).is_valid(now) {
            return;
        }
        let directory = self.cached(at);
        let asks = directory.version.is_some() && !directory.delegated && directory.look(now);
        if asks {
            self.ask(at, now);
        } else {
            self.tally.calls.getattrs += 1;
            self.note(at, now);
        }
    }

    fn list(&mut self, at: CachedPlace, now: u64) {
        self.tally.asked.listings += 1;
        let directory = self.used(at);
        if !(directory.is_valid(now) && directory.has_rights) {
            self.tally.calls.accesses += 1;
            self.policy.looked(now, at);
            self.note(at, now);
            let directory = self.cached(at);
            (directory.has_rights, directory.may_search) = (true, true);
        }
        // The mount shows the attributes of the directory as its first entry.
        self.fetch_unless_valid(at, now);
        let directory = self.cached(at);
        if directory.is_valid(now) && directory.delegated && directory.has_listing {
            if directory.has_all_attributes() {
                return;
            }
        } else {
            self.look_into(at, now);
        }
        self.tally.calls.readdirs += 1;
        self.policy.looked(now, at);
        let directory = self.cached(at);
        directory.names.retain(|_, known| *known == KnownName::Missing);
        (directory.is_listed, directory.may_search) = (true, true);
        directory.has_listing = directory.delegated;
        // Entries are known only if the directory has not changed since the look before: the reply
        // does not say whether they are older than its attributes.
        self.note(at, now);
    }

    /// Notes a look that the cache cannot answer. Returns whether a request for a delegation
    /// brought new attributes.
    fn look_into(&mut self, at: CachedPlace, now: u64) -> bool {
        let directory = self.cached(at);
        let asks = !directory.delegated && directory.look(now);
        if asks {
            self.ask(at, now);
        }
        asks
    }

    /// Asks for a delegation, and fetches the attributes in the same call.
    fn ask(&mut self, at: CachedPlace, now: u64) {
        self.tally.calls.requests += 1;
        let has_room = self.held < self.settings.delegations_max;
        let is_granted = has_room && self.policy.grants(now, at);
        self.note(at, now);
        self.cached(at).answered(now, is_granted);
        if is_granted && self.holders.entry(at.1).or_default().insert(at.0) {
            self.held += 1;
            self.tally.granted(self.held);
        }
    }

    fn note(&mut self, at: CachedPlace, now: u64) {
        let (version, times) = (self.tree.version(at.1), self.settings.believed_microseconds);
        self.cached(at).note(version, now, times);
    }

    fn rename(
        &mut self,
        client: u32,
        (from, to): (&(String, String), &(String, String)),
        now: u64,
    ) {
        let source = self.walk(client, &from.0, now);
        let target = self.walk(client, &to.0, now);
        self.find((client, source), (&from.1, None), now);
        self.find((client, target), (&to.1, None), now);
        self.tally.calls.changes += 1;
        self.change(Some(client), (source, &from.1, false), now);
        self.change(Some(client), (target, &to.1, true), now);
        // The object's attributes have changed.
        self.cached((client, target)).names.insert(to.1.clone(), KnownName::Changed);
    }

    /// Makes a change, after the holders of the directory were told.
    fn change(
        &mut self,
        own: Option<u32>,
        (directory, name, is_there): (u32, &str, bool),
        now: u64,
    ) {
        self.tally.asked.changes += 1;
        let others = self.holders.get(&directory).into_iter().flatten().copied();
        let others: Vec<u32> = others.filter(|it| Some(*it) != own).collect();
        for client in others {
            self.notify((client, directory), (name, is_there), now);
        }
        let version = self.tree.change(directory, name, is_there);
        if let Some(client) = own {
            self.changed_itself((client, directory), (name, is_there, version), now);
        }
    }

    /// Updates the cache of the client that made a change: its names stay if no other change came
    /// between.
    fn changed_itself(
        &mut self,
        at: CachedPlace,
        (name, is_there, version): (&str, bool, u64),
        now: u64,
    ) {
        let directory = self.cached(at);
        if directory.version.is_some_and(|known| known + 1 == version) {
            (directory.version, directory.fetched) = (Some(version), Some(now));
        } else {
            directory.forget();
            self.note(at, now);
        }
        let directory = self.cached(at);
        let known = if is_there { KnownName::There } else { KnownName::Missing };
        directory.names.insert(name.to_owned(), known);
        directory.may_search = true;
    }

    /// Notifies a holder of a change: together with other changes, or by a recall now.
    fn notify(&mut self, at: CachedPlace, (name, is_there): (&str, bool), now: u64) {
        let Some(delay) = self.settings.notification_delay_microseconds else {
            return self.recall(at, now);
        };
        if self.given_up.contains(&at) {
            return self.recall(at, now);
        }
        let batch = self.batches.entry(at).or_default();
        if batch.names.is_empty() {
            batch.due = now.saturating_add(delay);
        }
        batch.names.push((name.to_owned(), is_there));
        if batch.names.len() > NOTIFICATIONS_PER_CALL_MAX {
            self.batches.remove(&at);
            self.recall(at, now);
        }
    }

    fn recall(&mut self, at: CachedPlace, now: u64) {
        self.tally.calls.recalls += 1;
        self.tally.calls.returns += 1;
        self.let_go(at);
        let directory = self.cached(at);
        (directory.delegated, directory.fetched, directory.has_listing) = (false, None, false);
        self.policy.recalled(now, at);
    }

    fn let_go(&mut self, (client, directory): CachedPlace) {
        self.batches.remove(&(client, directory));
        self.given_up.remove(&(client, directory));
        if self.holders.get_mut(&directory).is_some_and(|holders| holders.remove(&client)) {
            self.held -= 1;
        }
    }

    /// Sends the notifications that are due.
    fn deliver(&mut self, now: u64) {
        let due = |(at, batch): (&CachedPlace, &Batch)| (batch.due <= now).then_some(*at);
        let due: Vec<_> = self.batches.iter().filter_map(due).collect();
        for at in due {
            let Some(batch) = self.batches.remove(&at) else { continue };
            self.tally.calls.notifications += 1;
            self.tally.notified += batch.names.len() as u64;
            if !self.policy.keeps(batch.due, at) {
                self.given_up.insert(at);
            }
            let version = self.tree.version(at.1);
            let directory = self.cached(at);
            directory.version = Some(version);
            for (name, is_there) in batch.names {
                directory.told(name, is_there);
            }
        }
    }

    fn cached(&mut self, (client, directory): CachedPlace) -> &mut CachedDirectory {
        let cache = self.clients.entry(client).or_default();
        cache.used(directory, usize::MAX).0
    }

    /// The same, after room for it was made in the client's cache.
    fn used(&mut self, at: CachedPlace) -> &mut CachedDirectory {
        let most = self.settings.cached_directories;
        let cache = self.clients.entry(at.0).or_default();
        if let (_, Some(returned)) = cache.used(at.1, most) {
            self.tally.calls.returns += 1;
            self.let_go((at.0, returned));
            self.policy.returned((at.0, returned));
        }
        self.cached(at)
    }
}
