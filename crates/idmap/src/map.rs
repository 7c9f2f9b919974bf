use std::fmt;
use std::sync::Arc;

use comity_ranges::{Builder, LookupCache, Range, Ranges, SharedCache};

/// Client ids and the server ids to which they are mapped: one to one if both ranges have the same
/// length, all to one if `disk` is a single id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The client's ids.
    pub wire: Range,
    /// The server's ids.
    pub disk: Range,
}

/// The treatment of an id in no range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MapDefault {
    /// The id becomes the anonymous one.
    #[default]
    Squash,
    /// The id stays as it is.
    Pass,
    /// Calls with the id are refused.
    Deny,
}

/// The reason why a rule is invalid, by itself or together with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// The ranges have different lengths, and the server's is not a single id.
    #[error("{wire} client ids cannot be {disk} server ids: give as many, or a single one",
        wire = .0.wire.count(), disk = .0.disk.count())]
    Lengths(Rule),
    /// Two rules map to one server id, so that it could not be mapped back.
    #[error("server ids {ids} are the target of another range too")]
    Ambiguous {
        /// The ids in question.
        ids: Range,
        /// The number of the earlier rule.
        earlier: u32,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Forward {
    wire_first: u32,
    disk: Range,
    rule: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Backward {
    disk_first: u32,
    wire_first: u32,
    all_to_one: bool,
    rule: u32,
}

/// Collects the rules of one map, in order of precedence.
#[derive(Debug, Clone, Default)]
pub struct IdMapBuilder {
    forward: Builder<Forward>,
    inverse: Builder<Backward>,
    rules: Vec<Rule>,
}

/// A map of ids with its inverse. Cloning is cheap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdMap {
    forward: Ranges<Forward>,
    inverse: Ranges<Backward>,
    rules: Arc<[Rule]>,
    recent: LookupCache,
}

/// The result for a client's id, with the number of the rule that applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The id becomes this server id.
    Mapped {
        /// The mapped id.
        disk: u32,
        /// The number of the rule.
        rule: u32,
    },
    /// No rule applies.
    Uncovered,
}

/// The result for a server's id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inverse {
    /// The id is shown as this client id: the only one that is mapped to it, or the lowest of them.
    Shown {
        /// The mapped id.
        wire: u32,
        /// The number of the rule.
        rule: u32,
    },
    /// No rule maps to it.
    Unreached,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.wire, self.disk)
    }
}

impl IdMapBuilder {
    /// Adds a rule with the lowest precedence; returns the client ids to which it applies, which
    /// are none if earlier rules apply to all of them.
    ///
    /// # Errors
    /// [`Conflict`]; the rule is then not added.
    pub fn add(&mut self, rule: Rule) -> Result<Vec<Range>, Conflict> {
        let all_to_one = rule.disk.count() == 1;
        if !all_to_one && rule.wire.count() != rule.disk.count() {
            return Err(Conflict::Lengths(rule));
        }
        let left = self.forward.left(rule.wire);
        let targets = targets(rule, all_to_one, &left);
        if let Some((ids, earlier)) =
            targets.iter().find_map(|&(target, _)| self.inverse.within(target).next())
        {
            return Err(Conflict::Ambiguous { ids, earlier: earlier.rule });
        }
        let number = self.rules.len() as u32;
        self.rules.push(rule);
        for (target, wire_first) in targets {
            let disk_first = target.first;
            let entry = Backward { disk_first, wire_first, all_to_one, rule: number };
            self.inverse.add(target, entry);
        }
        let entry = Forward { wire_first: rule.wire.first, disk: rule.disk, rule: number };
        Ok(self.forward.add(rule.wire, entry))
    }

    /// The first client ids in a range to which a rule already applies, with that rule's number.
    #[must_use]
    pub fn decided(&self, wire: Range) -> Option<(Range, u32)> {
        self.forward.within(wire).next().map(|(ids, entry)| (ids, entry.rule))
    }

    /// The finished map.
    #[must_use]
    pub fn build(self) -> IdMap {
        let (forward, inverse) = (self.forward.build(), self.inverse.build());
        IdMap { forward, inverse, rules: self.rules.into(), recent: LookupCache::default() }
    }
}

/// The server ids to which a rule maps the client ids left to it, each range with its first client
/// id.
fn targets(rule: Rule, all_to_one: bool, left: &[Range]) -> Vec<(Range, u32)> {
    if all_to_one {
        return left.first().map(|part| (rule.disk, part.first)).into_iter().collect();
    }
    let shift = |number: u32| rule.disk.first + (number - rule.wire.first);
    let target = |part: &Range| Range { first: shift(part.first), last: shift(part.last) };
    left.iter().map(|part| (target(part), part.first)).collect()
}

impl IdMap {
    /// A map without rules.
    #[must_use]
    pub fn empty() -> Self {
        IdMapBuilder::default().build()
    }

    /// Returns whether there is no rule.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Maps a client's id to the server's.
    #[must_use]
    #[inline]
    pub fn to_disk(&self, wire: u32) -> Step {
        match self.forward.find(wire) {
            None => Step::Uncovered,
            Some((_, Forward { wire_first, disk, rule })) => {
                let offset = if disk.first == disk.last { 0 } else { wire - wire_first };
                Step::Mapped { disk: disk.first + offset, rule }
            }
        }
    }

    /// Returns the client id as which a server's id is shown.
    #[must_use]
    #[inline]
    pub fn to_wire(&self, disk: u32) -> Inverse {
        match self.inverse.find(disk) {
            None => Inverse::Unreached,
            Some((_, Backward { disk_first, wire_first, all_to_one, rule })) => {
                let offset = if all_to_one { 0 } else { disk - disk_first };
                Inverse::Shown { wire: wire_first + offset, rule }
            }
        }
    }

    /// The cache of recent look-ups; `None` if the map is empty.
    pub(crate) fn recent(&self) -> Option<SharedCache> {
        (!self.is_empty()).then(|| self.recent.kept().clone())
    }

    /// The same without the rule, with the cache of a caller.
    #[inline(always)]
    pub(crate) fn shown(&self, recent: &SharedCache, disk: u32) -> Option<u32> {
        recent.get_or(disk, move || match self.to_wire(disk) {
            Inverse::Shown { wire, .. } => Some(wire),
            Inverse::Unreached => None,
        })
    }

    /// The server ids to which client ids are mapped.
    pub fn disk_ranges(&self) -> impl Iterator<Item = Range> + '_ {
        self.inverse.iter().map(|(range, _)| range)
    }

    /// The client ids that are mapped.
    pub fn wire_ranges(&self) -> impl Iterator<Item = Range> + '_ {
        self.forward.iter().map(|(range, _)| range)
    }

    /// Its rules by number, including those that never apply.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Ids that are the target of a rule but, as client ids, are in no range. A user with such an
    /// id who passes unchanged is the same on disk as the users whom the rule maps to it.
    #[must_use]
    pub fn passed_into(&self) -> Option<(Range, u32)> {
        let mut wire = Builder::new();
        self.wire_ranges().for_each(|range| drop(wire.add(range, ())));
        self.inverse
            .iter()
            .find_map(|(disk, entry)| wire.left(disk).first().map(|&ids| (ids, entry.rule)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(wire: (u32, u32), disk: (u32, u32)) -> Rule {
        let range = |(first, last)| Range { first, last };
        Rule { wire: range(wire), disk: range(disk) }
    }

    fn map(rules: &[Rule]) -> IdMap {
        let mut builder = IdMapBuilder::default();
        for &rule in rules {
            builder.add(rule).unwrap();
        }
        builder.build()
    }

    #[test]
    fn ids_are_mapped_and_mapped_back() {
        let map = map(&[rule((1000, 1999), (51_000, 51_999)), rule((0, 99), (60_000, 60_000))]);
        assert_eq!(map.to_disk(1005), Step::Mapped { disk: 51_005, rule: 0 });
        assert_eq!(map.to_wire(51_005), Inverse::Shown { wire: 1005, rule: 0 });
        assert_eq!(map.to_disk(7), Step::Mapped { disk: 60_000, rule: 1 });
        assert_eq!(map.to_wire(60_000), Inverse::Shown { wire: 0, rule: 1 });
        assert_eq!(map.to_disk(2000), Step::Uncovered);
        assert_eq!(map.to_wire(1005), Inverse::Unreached);
    }

    #[test]
    fn the_first_matching_rule_applies() {
        let map = map(&[rule((10, 19), (110, 119)), rule((0, 29), (200, 229))]);
        assert_eq!(map.to_disk(15), Step::Mapped { disk: 115, rule: 0 });
        assert_eq!(map.to_disk(25), Step::Mapped { disk: 225, rule: 1 });
        assert_eq!(map.to_wire(215), Inverse::Unreached);
        assert_eq!(map.to_wire(225), Inverse::Shown { wire: 25, rule: 1 });
    }

    #[test]
    fn lengths_that_differ_are_refused() {
        let uneven = rule((0, 9), (100, 108));
        assert_eq!(IdMapBuilder::default().add(uneven), Err(Conflict::Lengths(uneven)));
    }

    #[test]
    fn one_server_id_may_not_be_the_target_of_two_rules() {
        let mut builder = IdMapBuilder::default();
        builder.add(rule((0, 9), (100, 109))).unwrap();
        let ids = Range { first: 105, last: 109 };
        let found = builder.add(rule((50, 59), (105, 114)));
        assert_eq!(found, Err(Conflict::Ambiguous { ids, earlier: 0 }));
        let found = builder.add(rule((50, 59), (109, 109)));
        assert_eq!(found, Err(Conflict::Ambiguous { ids: Range::single(109), earlier: 0 }));
    }

    #[test]
    fn an_id_in_a_range_is_found() {
        let found = map(&[rule((1000, 1999), (1500, 2499))]).passed_into();
        assert_eq!(found, Some((Range { first: 2000, last: 2499 }, 0)));
        assert_eq!(map(&[rule((1000, 1999), (1000, 1999))]).passed_into(), None);
    }

    #[test]
    fn the_rule_that_already_applies_to_a_range_is_found() {
        let mut builder = IdMapBuilder::default();
        builder.add(rule((10, 19), (110, 119))).unwrap();
        builder.add(rule((30, 39), (130, 139))).unwrap();
        let decided = |first, last| builder.decided(Range { first, last });
        assert_eq!(decided(15, 50), Some((Range { first: 15, last: 19 }, 0)));
        assert_eq!(decided(35, 35), Some((Range::single(35), 1)));
        assert_eq!(decided(20, 29), None);
    }

    #[test]
    fn the_mapped_ids_are_listed_on_both_sides() {
        let map = map(&[rule((10, 19), (110, 119)), rule((30, 39), (7, 7))]);
        let range = |first, last| Range { first, last };
        assert_eq!(map.wire_ranges().collect::<Vec<_>>(), [range(10, 19), range(30, 39)]);
        assert_eq!(map.disk_ranges().collect::<Vec<_>>(), [range(7, 7), range(110, 119)]);
    }

    #[test]
    fn rules_keep_their_order_and_ranges() {
        let map = map(&[rule((5, 5), (7, 7)), rule((0, 9), (20, 29))]);
        assert_eq!(
            map.rules().iter().map(Rule::to_string).collect::<Vec<_>>(),
            ["5:7", "0-9:20-29"]
        );
    }

    proptest! {
        #[test]
        fn inside_one_to_one_ranges_there_and_back_is_the_identity(
            starts in proptest::collection::vec((0..1000_u32, 0..1000_u32, 1..50_u32), 1..9),
        ) {
            let mut builder = IdMapBuilder::default();
            for (wire, disk, count) in starts {
                let rule = rule((wire, wire + count), (5000 + disk, 5000 + disk + count));
                let _ = builder.add(rule);
            }
            let map = builder.build();
            for wire in 0..1100 {
                if let Step::Mapped { disk, rule } = map.to_disk(wire) {
                    prop_assert_eq!(map.to_wire(disk), Inverse::Shown { wire, rule });
                    let kept = map.recent().unwrap();
                    prop_assert_eq!(map.shown(&kept, disk), Some(wire));
                }
            }
        }
    }
}
