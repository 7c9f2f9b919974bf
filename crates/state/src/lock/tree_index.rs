//! Many locks, indexed by owner and by range in trees.

use std::collections::BTreeMap;

use super::ByteRange;
use super::table::LockType;
use super::tree::{Key, Tree};
use super::vec::LockVec;

/// Locks of all owners, with the rules of [`super::store::LockStore`].
#[derive(Debug, Clone)]
pub(super) struct TreeIndex {
    owners: BTreeMap<u64, BTreeMap<u64, Piece>>,
    read: Tree<u64>,
    write: Tree<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    last: u64,
    kind: LockType,
}

impl From<&LockVec> for TreeIndex {
    fn from(few: &LockVec) -> Self {
        let mut many = Self { owners: BTreeMap::new(), read: Tree::new(), write: Tree::new() };
        few.all().for_each(|lock| many.put(lock.owner, lock.range, lock.kind));
        many
    }
}

impl TreeIndex {
    pub(super) fn len(&self) -> usize {
        self.read.len() + self.write.len()
    }

    /// Returns the first lock of this kind, by first bytes, that overlaps `range` and whose owner
    /// `wanted` accepts.
    pub(super) fn find(
        &self,
        kind: LockType,
        range: ByteRange,
        wanted: impl Fn(u64) -> bool,
    ) -> Option<(ByteRange, u64)> {
        let tree = match kind {
            LockType::Read => &self.read,
            LockType::Write => &self.write,
        };
        tree.find(range, |_, owner| wanted(owner))
    }

    /// Returns whether `owner` has locked a byte of `range`.
    pub(super) fn holds_any(&self, owner: u64, range: ByteRange) -> bool {
        let Some(pieces) = self.owners.get(&owner) else { return false };
        let before = pieces.range(..=range.last).next_back();
        before.is_some_and(|(_, piece)| piece.last >= range.first)
    }

    /// Returns whether one lock of `owner` covers bytes before and after `range`.
    pub(super) fn surrounds(&self, owner: u64, range: ByteRange) -> bool {
        let Some(pieces) = self.owners.get(&owner) else { return false };
        let before = pieces.range(..range.first).next_back();
        before.is_some_and(|(_, piece)| piece.last > range.last)
    }

    /// Returns the locks of `owner`, in order.
    pub(super) fn of(&self, owner: u64) -> impl Iterator<Item = (ByteRange, LockType)> + '_ {
        let pieces = self.owners.get(&owner).into_iter().flatten();
        pieces.map(|(&first, piece)| (ByteRange { first, last: piece.last }, piece.kind))
    }

    /// Sets the lock of `owner` on `range` to one kind, or frees the range. Its earlier locks there
    /// are split, joined or removed.
    pub(super) fn set(&mut self, owner: u64, range: ByteRange, kind: Option<LockType>) {
        let mut whole = range;
        for (piece, held) in self.touching(owner, range) {
            if kind == Some(held) {
                self.take(owner, piece, held);
                whole = whole.hull(piece);
            } else if piece.overlaps(range) {
                match piece.before(range) {
                    Some(rest) => self.shorten(owner, rest, held),
                    None => self.take(owner, piece, held),
                }
                piece.behind(range).into_iter().for_each(|rest| self.put(owner, rest, held));
            }
        }
        if let Some(kind) = kind {
            self.put(owner, whole, kind);
        }
    }

    /// Returns the locks of `owner` that overlap `range` or are adjacent to it.
    fn touching(&self, owner: u64, range: ByteRange) -> Vec<(ByteRange, LockType)> {
        let Some(pieces) = self.owners.get(&owner) else { return Vec::new() };
        let near = range.widened();
        let from = pieces
            .range(..near.first)
            .next_back()
            .filter(|(_, piece)| piece.last >= near.first)
            .map_or(near.first, |(&first, _)| first);
        let piece =
            |(&first, piece): (&u64, &Piece)| (ByteRange { first, last: piece.last }, piece.kind);
        pieces.range(from..=near.last).map(piece).collect()
    }

    fn put(&mut self, owner: u64, range: ByteRange, kind: LockType) {
        self.tree(kind).insert(range, owner, 0, owner);
        let piece = Piece { last: range.last, kind };
        self.owners.entry(owner).or_default().insert(range.first, piece);
    }

    /// Cuts a lock down to `rest`, which begins at the lock's first byte.
    fn shorten(&mut self, owner: u64, rest: ByteRange, kind: LockType) {
        self.tree(kind).shorten(Key { first: rest.first, tie: owner }, rest.last);
        let pieces = self.owners.get_mut(&owner);
        if let Some(piece) = pieces.and_then(|pieces| pieces.get_mut(&rest.first)) {
            piece.last = rest.last;
        }
    }

    fn take(&mut self, owner: u64, range: ByteRange, kind: LockType) {
        self.tree(kind).remove(Key { first: range.first, tie: owner });
        if let Some(pieces) = self.owners.get_mut(&owner) {
            pieces.remove(&range.first);
            if pieces.is_empty() {
                self.owners.remove(&owner);
            }
        }
    }

    const fn tree(&mut self, kind: LockType) -> &mut Tree<u64> {
        match kind {
            LockType::Read => &mut self.read,
            LockType::Write => &mut self.write,
        }
    }
}
