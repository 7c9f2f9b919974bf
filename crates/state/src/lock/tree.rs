//! An interval tree: a treap by (first byte, tie), in which each subtree knows how far its ranges
//! reach and the lowest weight in it. All operations cost O(log n), and O(1) more for each range
//! found.

use std::cmp::Ordering;

use super::ByteRange;

/// A place in the tree's arena; none if it is this.
const NONE: u32 = u32::MAX;

/// The place of a range in the tree; a key is unique.
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
    /// The rank for [`Tree::lightest`], which finds the range with the lowest weight.
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

/// Ranges with values; any may overlap.
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

    /// Adds a range whose key is not there yet.
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

    /// Takes a range out.
    pub(super) fn remove(&mut self, key: Key) -> Option<V> {
        let (below, rest) = self.split(self.root, key);
        let next = Key { first: key.first, tie: key.tie.wrapping_add(1) };
        // The highest tie of all has no successor of the same first byte: all else is above it.
        let next = if key.tie == u64::MAX { Key { first: key.first + 1, tie: 0 } } else { next };
        let (found, above) = self.split(rest, next);
        self.root = self.join(below, above);
        let value = self.node(found)?.value;
        self.free.push(found);
        Some(value)
    }

    /// Lets a range end at another byte.
    pub(super) fn shorten(&mut self, key: Key, last: u64) {
        self.shorten_below(self.root, key, last);
    }

    /// The first range, in the order of their first bytes, that overlaps `range` and is `wanted`.
    pub(super) fn find(
        &self,
        range: ByteRange,
        mut wanted: impl FnMut(ByteRange, V) -> bool,
    ) -> Option<(ByteRange, V)> {
        self.search(self.root, range, &mut wanted)
    }

    /// The range of lowest weight that overlaps `range`: its key, itself and its value.
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

    /// The place of lowest weight among `best` and the ranges at and below `at` that overlap
    /// `range`.
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

    /// Two subtrees, the one with the lowest weight first: where all of it overlaps, the search
    /// goes straight down to that weight and passes by everything else.
    fn lighter_first(&self, left: u32, right: u32) -> [u32; 2] {
        let weight = |at| self.node(at).map_or(u64::MAX, |node| node.reach.weight_min);
        if weight(right) < weight(left) { [right, left] } else { [left, right] }
    }

    /// Parts a subtree into what is below `key` and the rest.
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

    /// Puts two subtrees together, all of `low` being below all of `high`.
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
