//! A few locks in a vector. Most files never have more.

use super::ByteRange;
use super::table::LockType;

/// Locks ordered by first byte, then by owner.
#[derive(Debug, Clone)]
pub(super) struct LockVec(Vec<Lock>);

/// A granted lock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lock {
    pub(super) owner: u64,
    pub(super) range: ByteRange,
    pub(super) kind: LockType,
}

impl LockVec {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns all locks.
    pub(super) fn all(&self) -> impl Iterator<Item = &Lock> {
        self.0.iter()
    }

    /// Returns the first lock of this kind that overlaps `range` and whose owner `wanted` accepts.
    pub(super) fn find(
        &self,
        kind: LockType,
        range: ByteRange,
        wanted: impl Fn(u64) -> bool,
    ) -> Option<(ByteRange, u64)> {
        let meant =
            |lock: &&Lock| lock.kind == kind && lock.range.overlaps(range) && wanted(lock.owner);
        self.0.iter().find(meant).map(|lock| (lock.range, lock.owner))
    }

    /// Returns whether `owner` has locked a byte of `range`.
    pub(super) fn holds_any(&self, owner: u64, range: ByteRange) -> bool {
        self.0.iter().any(|lock| lock.owner == owner && lock.range.overlaps(range))
    }

    /// Returns whether one lock of `owner` covers bytes before and after `range`.
    pub(super) fn surrounds(&self, owner: u64, range: ByteRange) -> bool {
        self.0.iter().any(|lock| lock.owner == owner && lock.range.surrounds(range))
    }

    /// Returns the locks of `owner`, in order.
    pub(super) fn of(&self, owner: u64) -> impl Iterator<Item = (ByteRange, LockType)> + '_ {
        let own = self.0.iter().filter(move |lock| lock.owner == owner);
        own.map(|lock| (lock.range, lock.kind))
    }

    /// Sets the lock of `owner` on `range` to one kind, or frees the range.
    pub(super) fn set(&mut self, owner: u64, range: ByteRange, kind: Option<LockType>) {
        let (near, mut whole, mut at) = (range.widened(), range, 0);
        while let Some(&Lock { owner: holder, range: piece, kind: held }) = self.0.get(at) {
            if holder != owner || !piece.overlaps(near) {
                at += 1;
            } else if kind == Some(held) {
                self.0.remove(at);
                whole = whole.hull(piece);
            } else if piece.overlaps(range) {
                self.0.remove(at);
                // The remaining pieces do not overlap `range`, so the loop skips them.
                for rest in [piece.before(range), piece.behind(range)].into_iter().flatten() {
                    self.put(Lock { owner, range: rest, kind: held });
                }
            } else {
                at += 1;
            }
        }
        if let Some(kind) = kind {
            self.put(Lock { owner, range: whole, kind });
        }
    }

    fn put(&mut self, lock: Lock) {
        let place = |lock: &Lock| (lock.range.first, lock.owner);
        let at = self.0.partition_point(|other| place(other) < place(&lock));
        self.0.insert(at, lock);
    }
}
