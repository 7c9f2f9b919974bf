//! An interval tree: a treap ordered by (first byte, tie). Each node stores the highest last byte
//! and the lowest weight of its subtree. All operations cost O(log n), and O(1) more for each range
//! found.

use std::cmp::Ordering;

use super::ByteRange;

/// The index that stands for no node.
const NONE: u32 = u32::MAX;

/// The key of a range, which is unique in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) first: u64,
    pub(super) tie: u64,
}

#[derive(Debug, Clone)]
struct Node<V> {
    key: Key,
    last: u64,
    value: V,
    /// The rank by which [`Tree::lightest`] chooses: the lowest weight wins.
    weight: u64,
    priority: u64,
    left: u32,
    right: u32,
    reach: Reach,
}

/// Bounds of a subtree.
#[derive(Debug, Clone, Copy)]
struct Reach {
    last_max: u64,
    weight_min: u64,
}

/// Ranges with values. Ranges may overlap.
#[derive(Debug, Clone)]
pub(super) struct Tree<V> {
    nodes: Vec<Node<V>>,
    free: Vec<u32>,
    root: u32,
    rng: u64,
}

impl<V: Copy> Tree<V> {
    pub(super) const fn new() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), root: NONE, rng: 0x9e37_79b9_7f4a_7c15 }
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Adds a range whose key is not in the tree.
    pub(super) fn insert(&mut self, range: ByteRange, tie: u64, weight: u64, value: V) {
        let key = Key { first: range.first, tie };
        let reach = Reach { last_max: range.last, weight_min: weight };
        let priority = self.roll();
        let (left, right, last) = (NONE, NONE, range.last);
        let node = Node { key, last, value, weight, priority, left, right, reach };
        let place = match self.free.pop() {
            Some(place) => {
                if let Some(spare) = self.nodes.get_mut(place as usize) {
                    *spare = node;
                }
                place
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        let (below, above) = self.split(self.root, key);
        let left = self.join(below, place);
        self.root = self.join(left, above);
    }

    /// Removes a range.
    pub(super) fn remove(&mut self, key: Key) -> Option<V> {
        let (below, rest) = self.split(self.root, key);
        let next = Key { first: key.first, tie: key.tie.wrapping_add(1) };
        // The highest tie has no successor with the same first byte, so the next first byte
        // follows.
        let next = if key.tie == u64::MAX { Key { first: key.first + 1, tie: 0 } } else { next };
        let (found, above) = self.split(rest, next);
        self.root = self.join(below, above);
        let value = self.node(found)?.value;
        self.free.push(found);
        Some(value)
    }

    /// Sets the last byte of a range.
    pub(super) fn shorten(&mut self, key: Key, last: u64) {
        self.shorten_below(self.root, key, last);
    }

    /// Returns the first range, by first bytes, that overlaps `range` and that `wanted` accepts.
    pub(super) fn find(
        &self,
        range: ByteRange,
        mut wanted: impl FnMut(ByteRange, V) -> bool,
    ) -> Option<(ByteRange, V)> {
        self.search(self.root, range, &mut wanted)
    }

    /// Returns the range with the lowest weight among those that overlap `range`: its key, its
    /// bytes and its value.
    pub(super) fn lightest(&self, range: ByteRange) -> Option<(Key, ByteRange, V)> {
        let found = self.lightest_below(self.root, range, None)?;
        let node = self.node(found)?;
        Some((node.key, ByteRange { first: node.key.first, last: node.last }, node.value))
    }

    fn node(&self, place: u32) -> Option<&Node<V>> {
        self.nodes.get(place as usize)
    }

    fn roll(&mut self) -> u64 {
        // xorshift64: the shape of the tree need only be independent of the order of keys.
        self.rng ^= self.rng << 13;
        self.rng ^= self.rng >> 7;
        self.rng ^= self.rng << 17;
        self.rng
    }

    fn search(
        &self,
        at: u32,
        range: ByteRange,
        wanted: &mut impl FnMut(ByteRange, V) -> bool,
    ) -> Option<(ByteRange, V)> {
        let node = self.node(at)?;
        if node.reach.last_max < range.first {
            return None;
        }
        if let Some(found) = self.search(node.left, range, wanted) {
            return Some(found);
        }
        if node.key.first > range.last {
            return None;
        }
        let here = ByteRange { first: node.key.first, last: node.last };
        if here.overlaps(range) && wanted(here, node.value) {
            return Some((here, node.value));
        }
        self.search(node.right, range, wanted)
    }

    /// Returns the node with the lowest weight among `best` and the nodes of the subtree `at` that
    /// overlap `range`.
    fn lightest_below(&self, at: u32, range: ByteRange, best: Option<u32>) -> Option<u32> {
        let Some(node) = self.node(at) else { return best };
        let bound = best.and_then(|place| self.node(place)).map_or(u64::MAX, |node| node.weight);
        if node.reach.last_max < range.first || node.reach.weight_min >= bound {
            return best;
        }
        let overlaps = node.last >= range.first && node.key.first <= range.last;
        let mut best = if overlaps && node.weight < bound { Some(at) } else { best };
        for child in self.lighter_first(node.left, node.right) {
            let begins = child == node.left || node.key.first <= range.last;
            if begins {
                best = self.lightest_below(child, range, best);
            }
        }
        best
    }

    /// Returns two subtrees, the one with the lowest weight first. If that subtree overlaps
    /// entirely, the search descends to its lowest weight and skips all other nodes.
    fn lighter_first(&self, left: u32, right: u32) -> [u32; 2] {
        let weight = |at| self.node(at).map_or(u64::MAX, |node| node.reach.weight_min);
        if weight(right) < weight(left) { [right, left] } else { [left, right] }
    }

    /// Splits a subtree into the nodes below `key` and the rest.
    fn split(&mut self, at: u32, key: Key) -> (u32, u32) {
        let Some(&Node { key: here, left, right, .. }) = self.node(at).map(|node| node as _) else {
            return (NONE, NONE);
        };
        if here < key {
            let (low, high) = self.split(right, key);
            self.set_children(at, left, low);
            (at, high)
        } else {
            let (low, high) = self.split(left, key);
            self.set_children(at, high, right);
            (low, at)
        }
    }

    fn shorten_below(&mut self, at: u32, key: Key, last: u64) {
        let Some(node) = self.nodes.get_mut(at as usize) else { return };
        let (left, right) = (node.left, node.right);
        match key.cmp(&node.key) {
            Ordering::Less => self.shorten_below(left, key, last),
            Ordering::Greater => self.shorten_below(right, key, last),
            Ordering::Equal => node.last = last,
        }
        self.set_children(at, left, right);
    }

    /// Joins two subtrees. All keys of `low` are below all keys of `high`.
    fn join(&mut self, low: u32, high: u32) -> u32 {
        let (Some(below), Some(above)) = (self.node(low), self.node(high)) else {
            return if low == NONE { high } else { low };
        };
        if below.priority > above.priority {
            let (left, right) = (below.left, below.right);
            let right = self.join(right, high);
            self.set_children(low, left, right);
            low
        } else {
            let (left, right) = (above.left, above.right);
            let left = self.join(low, left);
            self.set_children(high, left, right);
            high
        }
    }

    fn set_children(&mut self, at: u32, left: u32, right: u32) {
        let below = [left, right].map(|child| self.node(child).map(|node| node.reach));
        let Some(node) = self.nodes.get_mut(at as usize) else { return };
        (node.left, node.right) = (left, right);
        let own = Reach { last_max: node.last, weight_min: node.weight };
        node.reach = below.into_iter().flatten().fold(own, Reach::and);
    }
}

impl Reach {
    fn and(self, other: Self) -> Self {
        Self {
            last_max: self.last_max.max(other.last_max),
            weight_min: self.weight_min.min(other.weight_min),
        }
    }
}
