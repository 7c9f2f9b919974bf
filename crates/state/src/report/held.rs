//! The state of clients for administrators, in pages. No lock is held for long, even if there is
//! much state.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{Holdings, Standing, State, StateKind, client_of_lock_owner, lock_owner};
use crate::file::{File, Holder};
use crate::limits::{BLOCKERS_SHOWN_MAX, RANGES_SHOWN_MAX};
use crate::{
    ByteRange, Client, ClientId, DelegationKind, Engine, FileKey, HeldCounts, LockType, Revocation,
    Share,
};

/// A summary of a client.
#[derive(Debug, Clone)]
pub struct ClientSummary {
    /// The client.
    pub client: Arc<Client>,
    /// True if it is confirmed.
    pub confirmed: bool,
    /// True if its lease has expired, and it still has state that no other client needs.
    pub expired: bool,
    /// Time since it introduced itself.
    pub age: Duration,
    /// Time since its last call.
    pub silent: Duration,
    /// Number of its sessions.
    pub sessions: usize,
    /// Number of its states.
    pub counts: HeldCounts,
    /// Number of locks and recalls that it waits for.
    pub waits: usize,
    /// The clients that it waits for, up to a bound.
    pub waits_for: BTreeSet<ClientId>,
}

/// A state of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldState {
    /// The number of the state, unique for the client.
    pub number: u32,
    /// The file.
    pub file: FileKey,
    /// Its age; of a revoked state the time since it was revoked.
    pub age: Duration,
    /// Its kind and details.
    pub details: StateDetails,
}

/// The kind and details of a client's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StateDetails {
    /// An open.
    Open {
        /// The open-owner or lock-owner.
        owner: Box<[u8]>,
        /// Access and deny mode.
        share: Share,
    },
    /// Locks of a lock-owner.
    Locks {
        /// The open-owner or lock-owner.
        owner: Box<[u8]>,
        /// Number of ranges.
        count: usize,
        /// The first ranges, up to a bound.
        ranges: Vec<(ByteRange, LockType)>,
    },
    /// A delegation.
    Delegation {
        /// The access that it allows.
        kind: DelegationKind,
        /// Time since its recall began; none if it is not recalled.
        recalled: Option<Duration>,
    },
    /// A layout.
    Layout {
        /// Number of ranges that the client reads at data servers.
        read: usize,
        /// Number of ranges that it reads and writes there.
        read_write: usize,
    },
    /// A state that was revoked, and that the client has not freed yet.
    Revoked(Revocation),
}

/// A wait for another client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The client that waits; none for a client of NFSv3 or the server itself.
    pub client: Option<ClientId>,
    /// The client that it waits for; none if the lock is free and was offered to the waiting owner.
    pub holder: Option<ClientId>,
    /// The file.
    pub file: FileKey,
    /// Time since it began to wait.
    pub age: Duration,
    /// The lock or delegation that it waits for.
    pub awaited: Awaited,
}

/// The lock or delegation that a client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// A lock.
    Lock(ByteRange, LockType),
    /// The return of a delegation.
    Return(DelegationKind),
}

impl Engine {
    /// Returns up to `count` clients that were created after the client `after`, in that order.
    /// Hosts of NLM are included.
    #[must_use]
    pub fn clients_after(
        &self,
        now: Duration,
        after: ClientId,
        count: usize,
    ) -> Vec<ClientSummary> {
        self.summaries(now, self.clients.after(after).into_iter().take(count))
    }

    /// Returns the summary of one client.
    #[must_use]
    pub fn summary(&self, now: Duration, client: &Arc<Client>) -> Option<ClientSummary> {
        self.summaries(now, std::iter::once(Arc::clone(client))).pop()
    }

    fn summaries(
        &self,
        now: Duration,
        clients: impl Iterator<Item = Arc<Client>>,
    ) -> Vec<ClientSummary> {
        let mut page: Vec<_> = clients.map(|client| self.sum_up(now, client)).collect();
        let places = page.iter().zip(0..).map(|(summary, at)| (summary.client.id, at));
        let places: HashMap<ClientId, usize> = places.collect();
        let is_here = |client: ClientId| places.contains_key(&client);
        self.each_wait(now, &is_here, &mut |waiting| {
            let at = waiting.client.and_then(|client| places.get(&client));
            if let Some(summary) = at.and_then(|at| page.get_mut(*at)) {
                summary.waits += 1;
                if summary.waits_for.len() < BLOCKERS_SHOWN_MAX {
                    summary.waits_for.extend(waiting.holder);
                }
            }
        });
        page
    }

    fn sum_up(&self, now: Duration, client: Arc<Client>) -> ClientSummary {
        let state = client.state();
        let (confirmed, sessions) = (state.standing == Standing::Confirmed, state.sessions.len());
        let counts = state.holdings.counts();
        drop(state);
        ClientSummary {
            confirmed,
            expired: self.has_expired(now, &client),
            age: now.saturating_sub(client.met),
            silent: now.saturating_sub(client.renewed()),
            sessions,
            counts,
            waits: 0,
            waits_for: BTreeSet::new(),
            client,
        }
    }

    /// Returns up to `count` states of a client whose numbers are above `after`, in order.
    #[must_use]
    pub fn states_after(
        &self,
        now: Duration,
        client: &Client,
        (after, count): (u32, usize),
    ) -> Vec<HeldState> {
        let state = client.state();
        let numbers = state.holdings.states().map(|(number, _)| number);
        let mut numbers: Vec<u32> = numbers.filter(|number| *number > after).collect();
        numbers.sort_unstable();
        let shown = |number: u32| {
            let it = state.holdings.get(number)?;
            let details = details(client, &state.holdings, (number, it), now)?;
            let age = it.age(now);
            Some(HeldState { number, file: it.file.key, age, details })
        };
        numbers.into_iter().filter_map(shown).take(count).collect()
    }

    /// Returns up to `count` waits for locks and recalled delegations, and the number of all. If
    /// `client` is given, only its waits count.
    #[must_use]
    pub fn waits(
        &self,
        now: Duration,
        client: Option<ClientId>,
        count: usize,
    ) -> (Vec<Waiting>, usize) {
        let (mut found, mut all) = (Vec::new(), 0);
        let wanted = |waiter: ClientId| client.is_none_or(|client| client == waiter);
        self.each_wait(now, &wanted, &mut |waiting| {
            all += 1;
            if found.len() < count {
                found.push(waiting);
            }
        });
        (found, all)
    }

    /// Calls `each` with all waits of clients that `wanted` accepts. An unknown waiting client
    /// counts as client zero.
    fn each_wait(
        &self,
        now: Duration,
        wanted: &dyn Fn(ClientId) -> bool,
        each: &mut dyn FnMut(Waiting),
    ) {
        let client = |owner: u64| self.clients.id(client_of_lock_owner(owner));
        self.files.each_watched(now, |file| {
            let on_file = file.state();
            for (wish, since) in
                on_file.locks.waits().filter(|(wish, _)| wanted(client(wish.owner)))
            {
                let holder = on_file.locks.blocker(wish).map(|conflict| client(conflict.owner));
                each(Waiting {
                    client: Some(client(wish.owner)),
                    holder,
                    file: file.key,
                    age: now.saturating_sub(since),
                    awaited: Awaited::Lock(wish.range, wish.kind),
                });
            }
            for (holder, delegated) in on_file.delegations.iter() {
                let Some(recall) = delegated.recall else { continue };
                let asked = recall.wanted_by.map_or_else(|| wanted(ClientId(0)), wanted);
                if asked {
                    each(Waiting {
                        client: recall.wanted_by,
                        holder: Some(holder.client),
                        file: file.key,
                        age: now.saturating_sub(recall.queued),
                        awaited: Awaited::Return(delegated.kind),
                    });
                }
            }
        });
    }
}

fn details(
    client: &Client,
    holdings: &Holdings,
    (number, state): (u32, &State),
    now: Duration,
) -> Option<StateDetails> {
    let name = |owner: u32| holdings.owner(owner).map(|owner| owner.name.clone());
    Some(match &state.what {
        StateKind::Open(opening) if opening.closed => return None,
        StateKind::Open(opening) => StateDetails::Open {
            owner: name(opening.owner).unwrap_or_default(),
            share: opening.share,
        },
        StateKind::Lock(locking) => {
            let (count, ranges) = ranges(&state.file, lock_owner(client.id, locking.owner));
            StateDetails::Locks { owner: name(locking.owner).unwrap_or_default(), count, ranges }
        }
        StateKind::Delegation(delegating) => {
            let holder = Holder { client: client.id, state: number };
            let mut on_file = state.file.state();
            let recall = on_file.delegations.get_mut(holder).and_then(|it| it.recall);
            let recalled = recall.map(|recall| now.saturating_sub(recall.queued));
            StateDetails::Delegation { kind: delegating.kind, recalled }
        }
        StateKind::Layout(layout) => {
            let [read, read_write] = layout.ranges();
            StateDetails::Layout { read, read_write }
        }
        StateKind::Revoked(revoked) => StateDetails::Revoked(revoked.why),
    })
}

fn ranges(file: &File, owner: u64) -> (usize, Vec<(ByteRange, LockType)>) {
    let on_file = file.state();
    let first = on_file.locks.held_by(owner).take(RANGES_SHOWN_MAX).collect();
    (on_file.locks.held_by(owner).count(), first)
}
