use std::time::Duration;

use super::ByteRange;
use super::queue::{Line, Wish};
use super::store::LockStore;

/// A read or write lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockType {
    /// A read lock, which several owners may have at once (`READ_LT`).
    Read,
    /// A write lock, which one owner has alone (`WRITE_LT`).
    Write,
}

/// A lock that conflicts with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// Its owner.
    pub owner: u64,
    /// Its bytes.
    pub range: ByteRange,
    /// Its type.
    pub kind: LockType,
}

/// A free lock that is reserved for a waiting owner until the owner takes it or the offer expires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// The owner that is next.
    pub owner: u64,
    /// Its bytes.
    pub range: ByteRange,
    /// Its type.
    pub kind: LockType,
}

/// A lock that an owner waits for, or that is offered to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedLock {
    /// The owner, its bytes and its type.
    pub wish: Offer,
    /// True if the lock is free and offered to the owner.
    pub offered: bool,
    /// Time at which the owner began to wait, or got the offer.
    pub since: Duration,
    /// Time at which the owner leaves the queue.
    pub until: Duration,
}

/// The byte-range locks of one file, and the owners that wait for them.
///
/// The caller chooses the numbers of owners. Times count from any fixed moment. Invariants:
/// - no byte is locked by two owners unless both locks are read locks;
/// - an owner never gets bytes that an earlier waiting owner wants, except those it has locked
///   itself, so that a stream of readers cannot starve a writer;
/// - lock, unlock, split and join cost O(log n), and each waiting owner that can go on costs O(log
///   n) more.
#[derive(Debug, Clone)]
pub struct FileLocks {
    held: LockStore,
    waiting: Line,
    offered: Line,
    /// The number of the next ticket.
    ticket: u64,
    /// Time for which an offer is valid.
    offer: Duration,
}

impl FileLocks {
    /// Makes an empty set. Offers are valid for the time `offer`.
    #[must_use]
    pub const fn new(offer: Duration) -> Self {
        Self {
            held: LockStore::new(),
            waiting: Line::new(),
            offered: Line::new(),
            ticket: 0,
            offer,
        }
    }

    /// Returns the number of locks, waiters and offers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.held.len() + self.waiting.len() + self.offered.len()
    }

    /// Returns whether there are no locks, waiters and offers.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether `owner` has locks or waits for any.
    #[must_use]
    pub fn knows(&self, owner: u64) -> bool {
        let waits = |line: &Line| !line.tickets(owner).is_empty();
        self.held_by(owner).next().is_some() || waits(&self.waiting) || waits(&self.offered)
    }

    /// Returns whether another owner waits for bytes that `owner` has locked.
    #[must_use]
    pub fn is_awaited(&self, owner: u64) -> bool {
        let awaited =
            |(range, kind)| self.waiting.conflict(Wish { owner, range, kind }, u64::MAX).is_some();
        self.held_by(owner).any(awaited)
    }

    /// Returns the locks of `owner`, in order.
    pub fn held_by(&self, owner: u64) -> impl Iterator<Item = (ByteRange, LockType)> + '_ {
        self.held.of(owner)
    }

    /// Returns all waiting owners in order of arrival, then all offers; each with the time at which
    /// it began.
    pub fn waits(&self) -> impl Iterator<Item = (Offer, Duration)> + '_ {
        let wishes = self.waiting.all().chain(self.offered.all());
        wishes.map(|(Wish { owner, range, kind }, since)| (Offer { owner, range, kind }, since))
    }

    /// Returns the owners that wait, and those with an offer, all in order of arrival.
    #[must_use]
    pub fn queue(&self) -> Vec<QueuedLock> {
        let waiting = self.waiting.tickets_of_all().map(|place| (place, false));
        let offered = self.offered.tickets_of_all().map(|place| (place, true));
        let mut all: Vec<_> = waiting.chain(offered).collect();
        all.sort_unstable_by_key(|((ticket, ..), _)| *ticket);
        let queued = |((_, Wish { owner, range, kind }, since, until), offered)| {
            let wish = Offer { owner, range, kind };
            QueuedLock { wish, offered, since, until }
        };
        all.into_iter().map(queued).collect()
    }

    /// Adds a wish or an offer after all others, as [`FileLocks::queue`] returned it for these
    /// locks. The owner must not have the same wish already.
    pub fn restore(&mut self, queued: QueuedLock) {
        let QueuedLock { wish: Offer { owner, range, kind }, offered, since, until } = queued;
        let line = if offered { &mut self.offered } else { &mut self.waiting };
        line.add(self.ticket, Wish { owner, range, kind }, (since, until));
        self.ticket += 1;
    }

    /// Returns the lock, offer or earlier waiting owner that a waiting owner waits for.
    #[must_use]
    pub fn blocker(&self, Offer { owner, range, kind }: Offer) -> Option<Conflict> {
        self.obstacle(Wish { owner, range, kind })
    }

    /// Returns the union of all owners' locks within a range, in order and without gaps.
    #[must_use]
    pub fn united(&self, range: ByteRange) -> Vec<(ByteRange, Option<LockType>)> {
        self.held.united(range)
    }

    /// Returns the number of granted locks, and the number of those that are waited for or offered.
    #[must_use]
    pub fn counts(&self) -> (usize, usize) {
        (self.held.len(), self.waiting.len() + self.offered.len())
    }

    /// Returns whether an owner that `meant` accepts has, or waits for, a lock anywhere in the file
    /// that conflicts with one of this type. The cost is linear in the number of locks.
    #[must_use]
    pub fn stands_against(&self, kind: LockType, meant: impl Fn(u64) -> bool) -> bool {
        let against = |other| other == LockType::Write || kind == LockType::Write;
        self.held.stands_against(kind, &meant)
            || self.waits().any(|(wish, _)| against(wish.kind) && meant(wish.owner))
    }

    /// Returns a lock that conflicts with this one, if there is one (LOCKT).
    #[must_use]
    pub fn test(&self, owner: u64, range: ByteRange, kind: LockType) -> Option<Conflict> {
        self.held.conflict(owner, range, kind)
    }

    /// Locks a range; the owner's earlier locks there get this type. If a lock becomes weaker, the
    /// locks that other owners can have now are added to `offers`.
    ///
    /// # Errors
    /// [`Conflict`]: the lock is refused. With `wait_until` the owner waits for it in order of
    /// arrival until that time; a repeated request sets a new time.
    pub fn lock(
        &mut self,
        now: Duration,
        Offer { owner, range, kind }: Offer,
        wait_until: Option<Duration>,
        offers: &mut Vec<Offer>,
    ) -> Result<(), Conflict> {
        let wish = Wish { owner, range, kind };
        if let Some(conflict) = self.obstacle(wish) {
            if let Some(until) = wait_until {
                self.enqueue(wish, (now, until));
            }
            return Err(conflict);
        }
        let ticket = self.waiting.ticket(wish);
        ticket.and_then(|ticket| self.waiting.remove(ticket));
        let ticket = self.offered.ticket(wish);
        ticket.and_then(|ticket| self.offered.remove(ticket));
        self.held.set(owner, range, Some(kind));
        self.wake(now, range, offers);
        Ok(())
    }

    /// Returns whether the number of locks grows by one when `owner` frees a range.
    #[must_use]
    pub fn splits(&self, owner: u64, range: ByteRange) -> bool {
        self.held.surrounds(owner, range)
    }

    /// Frees the locks of `owner` in a range, and adds the locks that waiting owners can have now
    /// to `offers`.
    pub fn unlock(&mut self, now: Duration, owner: u64, range: ByteRange, offers: &mut Vec<Offer>) {
        self.held.set(owner, range, None);
        self.wake(now, range, offers);
    }

    /// Frees the locks of `owner` in a range except those in `left`, which must not be stronger
    /// than the present ones. The locks that waiting owners can have now are added to `offers`.
    pub fn reduce(
        &mut self,
        now: Duration,
        (owner, range): (u64, ByteRange),
        left: impl Iterator<Item = (ByteRange, LockType)>,
        offers: &mut Vec<Offer>,
    ) {
        self.held.set(owner, range, None);
        left.for_each(|(piece, kind)| self.held.set(owner, piece, Some(kind)));
        self.wake(now, range, offers);
    }

    /// Returns the locks of `owner` within a range, in order.
    #[must_use]
    pub fn held_within(&self, owner: u64, range: ByteRange) -> Vec<(ByteRange, LockType)> {
        let within = |(piece, kind): (ByteRange, LockType)| {
            let part =
                ByteRange { first: piece.first.max(range.first), last: piece.last.min(range.last) };
            piece.overlaps(range).then_some((part, kind))
        };
        self.held_by(owner).filter_map(within).collect()
    }

    /// Returns whether an owner has locked every byte of a range by locks of this type.
    #[must_use]
    pub fn has_all(&self, Offer { owner, range, kind }: Offer) -> bool {
        let mut missing = Some(range.first);
        for (piece, held) in self.held_within(owner, range) {
            if missing != Some(piece.first) || held != kind {
                return false;
            }
            missing = piece.last.checked_add(1);
        }
        missing.is_none_or(|first| first > range.last)
    }

    /// Returns whether a lock is offered to its owner.
    #[must_use]
    pub fn is_offered(&self, Offer { owner, range, kind }: Offer) -> bool {
        self.offered.ticket(Wish { owner, range, kind }).is_some()
    }

    /// Removes a wish or an offer.
    pub fn cancel(&mut self, now: Duration, waiter: Offer, offers: &mut Vec<Offer>) {
        let Offer { owner, range, kind } = waiter;
        let wish = Wish { owner, range, kind };
        let tickets = [self.waiting.ticket(wish), self.offered.ticket(wish)];
        for ticket in tickets.into_iter().flatten() {
            self.drop_out(ticket);
            self.wake(now, range, offers);
        }
    }

    /// Removes the wishes and offers that `ends` accepts. The cost is linear in their number.
    pub fn withdraw(
        &mut self,
        now: Duration,
        ends: impl Fn(&Offer) -> bool,
        offers: &mut Vec<Offer>,
    ) {
        let ended: Vec<_> = self.waits().map(|(wish, _)| wish).filter(ends).collect();
        let tickets = |Offer { owner, range, kind }: &Offer| {
            let wish = Wish { owner: *owner, range: *range, kind: *kind };
            [self.waiting.ticket(wish), self.offered.ticket(wish)]
        };
        let tickets: Vec<_> = ended.iter().flat_map(tickets).flatten().collect();
        for ticket in tickets {
            self.drop_out(ticket);
        }
        // All have left by now, so that none of them is offered the bytes of another.
        ended.iter().for_each(|wish| self.wake(now, wish.range, offers));
    }

    /// Removes all locks, wishes and offers of an owner.
    pub fn forget(&mut self, now: Duration, owner: u64, offers: &mut Vec<Offer>) {
        let tickets = [self.waiting.tickets(owner), self.offered.tickets(owner)];
        for ticket in tickets.into_iter().flatten() {
            if let Some(range) = self.drop_out(ticket) {
                self.wake(now, range, offers);
            }
        }
        let held: Vec<_> = self.held.of(owner).map(|(range, _)| range).collect();
        for range in held {
            self.unlock(now, owner, range, offers);
        }
    }

    /// Removes wishes and offers that have expired.
    pub fn expire(&mut self, now: Duration, offers: &mut Vec<Offer>) {
        while let Some(ticket) = self.waiting.overdue(now).or_else(|| self.offered.overdue(now)) {
            if let Some(range) = self.drop_out(ticket) {
                self.wake(now, range, offers);
            }
        }
    }

    /// Returns the next time at which [`FileLocks::expire`] has work.
    #[must_use]
    pub fn deadline(&self) -> Option<Duration> {
        [self.waiting.deadline(), self.offered.deadline()].into_iter().flatten().min()
    }

    fn drop_out(&mut self, ticket: u64) -> Option<ByteRange> {
        let wish = self.waiting.remove(ticket).or_else(|| self.offered.remove(ticket))?;
        Some(wish.range)
    }

    /// Returns the conflict of a wish: a lock, an offer, or an earlier wish.
    fn obstacle(&self, wish: Wish) -> Option<Conflict> {
        let Wish { owner, range, kind } = wish;
        let held = self.held.conflict(owner, range, kind);
        held.or_else(|| self.offered.conflict(wish, u64::MAX)).or_else(|| {
            // An owner that has locked a part of the range does not queue, since the queue may be
            // waiting for that part.
            if self.held.holds_any(owner, range) {
                return None;
            }
            let drawn = self.waiting.ticket(wish).or_else(|| self.offered.ticket(wish));
            self.waiting.conflict(wish, drawn.unwrap_or(u64::MAX))
        })
    }

    fn enqueue(&mut self, wish: Wish, (now, until): (Duration, Duration)) {
        match self.waiting.ticket(wish) {
            Some(ticket) => self.waiting.extend(ticket, until),
            None if self.offered.ticket(wish).is_some() => {}
            None => {
                self.waiting.add(self.ticket, wish, (now, until));
                self.ticket += 1;
            }
        }
    }

    /// Offers free bytes of `range` to waiting owners, the earliest first. Bytes of an earlier wish
    /// are not offered to a later one, except after an offer of a read lock.
    fn wake(&mut self, now: Duration, range: ByteRange, offers: &mut Vec<Offer>) {
        if self.waiting.is_empty() {
            return;
        }
        let mut stretches = vec![range];
        while let Some(stretch) = stretches.pop() {
            let Some((ticket, wish)) = self.waiting.first(stretch) else { continue };
            let Wish { owner, range, kind } = wish;
            let free = self.held.conflict(owner, range, kind).is_none()
                && self.offered.conflict(wish, u64::MAX).is_none()
                && self.waiting.conflict(wish, ticket).is_none();
            if free {
                self.waiting.remove(ticket);
                self.offered.add(ticket, wish, (now, now.saturating_add(self.offer)));
                offers.push(Offer { owner, range, kind });
            }
            if free && kind == LockType::Read {
                stretches.push(stretch);
            } else {
                stretches
                    .extend([stretch.before(range), stretch.behind(range)].into_iter().flatten());
            }
        }
    }
}
