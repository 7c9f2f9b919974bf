//! Owners that wait for locks, in order of arrival, and offers of free locks to the next of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ByteRange;
use super::table::{Conflict, LockType};
use super::tree::{Key, Tree};

/// A lock that an owner waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Wish {
    pub(super) owner: u64,
    pub(super) range: ByteRange,
    pub(super) kind: LockType,
}

#[derive(Debug, Clone, Copy)]
struct Waiter {
    wish: Wish,
    since: Duration,
    until: Duration,
}

/// Waiting requests by their tickets, lowest first, in one tree for each kind of lock.
#[derive(Debug, Clone)]
pub(super) struct Line {
    places: BTreeMap<u64, Waiter>,
    tickets: BTreeMap<Wish, u64>,
    deadlines: BTreeSet<(Duration, u64)>,
    read: Tree<u64>,
    write: Tree<u64>,
}

impl Line {
    pub(super) const fn new() -> Self {
        Self {
            places: BTreeMap::new(),
            tickets: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            read: Tree::new(),
            write: Tree::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether the queue is empty. Most queues are, so that this is checked before any
    /// search.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    pub(super) fn add(&mut self, ticket: u64, wish: Wish, (since, until): (Duration, Duration)) {
        self.places.insert(ticket, Waiter { wish, since, until });
        self.tickets.insert(wish, ticket);
        self.deadlines.insert((until, ticket));
        self.tree(wish.kind).insert(wish.range, ticket, ticket, ticket);
    }

    pub(super) fn remove(&mut self, ticket: u64) -> Option<Wish> {
        let Waiter { wish, until, .. } = self.places.remove(&ticket)?;
        self.tickets.remove(&wish);
        self.deadlines.remove(&(until, ticket));
        self.tree(wish.kind).remove(Key { first: wish.range.first, tie: ticket });
        Some(wish)
    }

    /// Returns all waiting requests in order of arrival, with the time at which each began.
    pub(super) fn all(&self) -> impl Iterator<Item = (Wish, Duration)> + '_ {
        self.places.values().map(|place| (place.wish, place.since))
    }

    /// Returns all waiting requests by their tickets, with the times of their begin and their end.
    pub(super) fn tickets_of_all(
        &self,
    ) -> impl Iterator<Item = (u64, Wish, Duration, Duration)> + '_ {
        self.places.iter().map(|(ticket, place)| (*ticket, place.wish, place.since, place.until))
    }

    /// Extends the time of a waiting request.
    pub(super) fn extend(&mut self, ticket: u64, until: Duration) {
        if let Some(place) = self.places.get_mut(&ticket) {
            self.deadlines.remove(&(place.until, ticket));
            place.until = until;
            self.deadlines.insert((until, ticket));
        }
    }

    /// Returns the earliest waiting request for a byte of `range`.
    pub(super) fn first(&self, range: ByteRange) -> Option<(u64, Wish)> {
        if self.is_empty() {
            return None;
        }
        let found = [self.read.lightest(range), self.write.lightest(range)];
        let ticket = found.into_iter().flatten().map(|(_, _, ticket)| ticket).min()?;
        Some((ticket, self.places.get(&ticket)?.wish))
    }

    /// Returns the earliest conflicting request of another owner with a ticket below `ticket`.
    pub(super) fn conflict(&self, wish: Wish, ticket: u64) -> Option<Conflict> {
        if self.is_empty() {
            return None;
        }
        let other = |found: u64| {
            let other = self.places.get(&found)?.wish;
            (found < ticket && other.owner != wish.owner).then_some(other)
        };
        let earlier = |tree: &Tree<u64>| {
            let (_, _, first) = tree.lightest(wish.range).filter(|found| found.2 < ticket)?;
            // The earliest request may belong to this owner. Only then all requests are searched,
            // which costs time only for an owner that waits twice for the same bytes.
            let mine = self.places.get(&first).is_some_and(|p| p.wish.owner == wish.owner);
            let any = || tree.find(wish.range, |_, found| other(found).is_some());
            if mine { other(any()?.1) } else { other(first) }
        };
        let read = || if wish.kind == LockType::Write { earlier(&self.read) } else { None };
        let Wish { owner, range, kind } = earlier(&self.write).or_else(read)?;
        Some(Conflict { owner, range, kind })
    }

    /// Returns the ticket of exactly this request.
    pub(super) fn ticket(&self, wish: Wish) -> Option<u64> {
        self.tickets.get(&wish).copied()
    }

    /// Returns the tickets of all requests of `owner`.
    pub(super) fn tickets(&self, owner: u64) -> Vec<u64> {
        let from = Wish { owner, range: ByteRange { first: 0, last: 0 }, kind: LockType::Read };
        let theirs = self.tickets.range(from..).take_while(|(wish, _)| wish.owner == owner);
        theirs.map(|(_, &ticket)| ticket).collect()
    }

    /// Returns a ticket that has expired.
    pub(super) fn overdue(&self, now: Duration) -> Option<u64> {
        self.deadlines.first().filter(|(until, _)| *until <= now).map(|&(_, ticket)| ticket)
    }

    /// Returns the time at which the next ticket expires.
    pub(super) fn deadline(&self) -> Option<Duration> {
        self.deadlines.first().map(|&(until, _)| until)
    }

    const fn tree(&mut self, kind: LockType) -> &mut Tree<u64> {
        match kind {
            LockType::Read => &mut self.read,
            LockType::Write => &mut self.write,
        }
    }
}
