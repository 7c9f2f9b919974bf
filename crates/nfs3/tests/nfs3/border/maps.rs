//! Random maps, and a slow second implementation of what docs/exports.md says about them.

use std::fmt;

use crate::hunt::rng::Rng;

/// The first client id and the first server id: no other number in a reply is near them.
pub(crate) const CLIENT: u32 = 0x00c1_0000;
pub(crate) const SERVER: u32 = 0x5eaf_0000;
pub(crate) const IDS: u32 = 24;
pub(crate) const ANONYMOUS: u32 = 0x0a00_fffe;

#[derive(Debug, Clone)]
pub(crate) struct Maps {
    pub(crate) users: Map,
    pub(crate) groups: Map,
    all_squashed: bool,
}

/// One of the two maps.
#[derive(Debug, Clone)]
pub(crate) struct Map {
    id: &'static str,
    rules: Vec<Rule>,
    default: &'static str,
}

/// The first client id, the number of ids, the first server id, and true if all map to that one.
#[derive(Debug, Clone)]
struct Rule(u32, u32, u32, bool);

impl Maps {
    pub(crate) fn random(rng: &mut Rng) -> Self {
        let default = *rng.pick(&["squash", "squash", "deny", "pass"]);
        let mut map = |id| {
            let rules = (0..1 + rng.below(3)).map(|_| Rule::random(rng)).collect();
            Map { id, rules, default }
        };
        Self { users: map("uid"), groups: map("gid"), all_squashed: rng.one_in(8) }
    }
}

impl fmt::Display for Maps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { users, groups, all_squashed } = self;
        write!(f, "anonuid={ANONYMOUS},anongid={ANONYMOUS},map_default={}", users.default)?;
        for Map { id, rules, .. } in [users, groups] {
            for Rule(wire, count, disk, single) in rules {
                let (wire_last, disk_last) = (wire + count - 1, disk + count - 1);
                let disk_last = if *single { *disk } else { disk_last };
                write!(f, ",range_map_{id}={wire}-{wire_last}:{disk}-{disk_last}")?;
            }
        }
        f.write_str(if *all_squashed { ",all_squash" } else { "" })
    }
}

impl Rule {
    fn random(rng: &mut Rng) -> Self {
        let mut below = |end: u32| rng.below(end as usize) as u32;
        let (wire, disk) = (CLIENT + below(IDS), SERVER + below(IDS));
        Self(wire, 1 + below(8), disk, below(3) == 0)
    }

    /// The server's id of a client's id, or `None` if the rule does not cover it.
    fn to_disk(&self, wire: u32) -> Option<u32> {
        let Self(first, count, disk, single) = *self;
        let offset = wire.checked_sub(first).filter(|offset| *offset < count)?;
        Some(if single { disk } else { disk + offset })
    }
}

impl Map {
    /// Returns whether a caller may act under this id of the server.
    pub(crate) fn may_act(&self, disk: u32) -> bool {
        disk == ANONYMOUS || self.may_own(disk)
    }

    pub(crate) fn may_join(&self, disk: u32) -> bool {
        self.may_own(disk)
    }

    /// Returns whether a client has an id that maps to this one, so that a file can be given to it.
    pub(crate) fn may_own(&self, disk: u32) -> bool {
        self.is_reached(disk) || self.default == "pass" && self.to_disk(disk).is_none()
    }

    /// Returns whether a reply may contain this id of the server: ids in no range are shown
    /// unchanged.
    pub(crate) fn may_show(&self, disk: u32) -> bool {
        self.default == "pass" && !self.is_reached(disk)
    }

    /// The first rule that covers a client's id applies.
    fn to_disk(&self, wire: u32) -> Option<u32> {
        self.rules.iter().find_map(|rule| rule.to_disk(wire))
    }

    fn is_reached(&self, disk: u32) -> bool {
        (CLIENT..CLIENT + 2 * IDS).any(|wire| self.to_disk(wire) == Some(disk))
    }
}
