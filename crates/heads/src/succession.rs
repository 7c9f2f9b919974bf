//! The rule by which heads divide exports without a head among themselves. Each head decides alone,
//! by what it sees; etcd lets only one of them have the export.

use std::time::Duration;

/// Lengths of a lease for which other heads that are up may leave an export without a head until a
/// drained head takes it.
const REFUSED_LENGTHS: u32 = 4;

/// Time that a head gives each head which comes before it for an export: two looks at etcd.
pub const RANK_PAUSE: Duration = Duration::from_secs(2);

/// The head that decides.
#[derive(Debug, Clone, Copy)]
pub struct OwnHead<'h> {
    /// Its name.
    pub name: &'h str,
    /// The time since it has joined.
    pub up: Duration,
    /// True if it is to move its exports away.
    pub is_drained: bool,
}

/// The head that the option `home` names.
#[derive(Debug, Clone, Copy)]
pub struct HomeHead<'h> {
    /// Its name.
    pub name: &'h str,
    /// True if it has a lease.
    pub is_up: bool,
    /// True if it is to move its exports away.
    pub is_drained: bool,
}

/// The head of the address of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressHead {
    /// The export has no address, or no head has it.
    Nobody,
    /// The head that decides has it. With `has_exports` it serves other exports with the address.
    Own {
        /// True if it serves other exports with the address.
        has_exports: bool,
    },
    /// Another head has it.
    Other,
}

/// An export without a head.
#[derive(Debug, Clone, Copy)]
pub struct HeadlessExport<'e> {
    /// Its address, or its path if it has none: exports with one address go together.
    pub group: &'e [u8],
    /// Its home.
    pub home: Option<HomeHead<'e>>,
    /// The head of its address.
    pub address: AddressHead,
    /// The time for which the head that decides has seen it without a head.
    pub since: Duration,
}

/// The rule.
#[derive(Debug, Clone, Copy)]
pub struct Succession {
    /// The length of the lease of a head.
    pub lease: Duration,
}

impl Succession {
    /// Returns whether a head takes an export; `undrained` are the names of the heads that are up
    /// and not drained.
    ///
    /// The head that the option `home` names comes first. Others wait for it for the time of a
    /// lease after their own start; if it is up and does not take the export, for the time of a
    /// lease, too. If the address of the export has a head, only that one takes the export.
    ///
    /// Of the others, that have equal rights, each has a rank for the export. The first one takes
    /// it at once, each further one after [`RANK_PAUSE`] more. So the exports of a failed head are
    /// divided among all others, and few heads ask etcd for the same one.
    ///
    /// A drained head takes an export only if no other head could: clients that wait for a head
    /// that is forgotten in this state are worse off than those that have to move once more. It
    /// gives others the time of a lease, and a multiple of that if they are up but do not take it.
    pub fn takes<'h>(
        &self,
        own: OwnHead<'_>,
        export: &HeadlessExport<'_>,
        mut undrained: impl Iterator<Item = &'h str>,
    ) -> bool {
        let length = self.lease;
        match export.address {
            AddressHead::Other => return false,
            // The exports with this address move together, and none of them without a head.
            AddressHead::Own { has_exports } => return !own.is_drained || has_exports,
            AddressHead::Nobody => {}
        }
        if own.is_drained {
            let is_refused = export.since > length * REFUSED_LENGTHS;
            return export.since > length && (is_refused || undrained.next().is_none());
        }
        let waited = match export.home {
            Some(home) if home.name == own.name => return true,
            Some(home) if !home.is_drained && own.up <= length => return false,
            Some(home) if !home.is_drained && home.is_up => {
                export.since.checked_sub(length).filter(|since| !since.is_zero())
            }
            _ => Some(export.since),
        };
        waited.is_some_and(|waited| is_turn(own.name, (export.group, waited), undrained))
    }
}

/// Returns whether so few heads come before this one that it is its turn after this time.
fn is_turn<'h>(
    own: &str,
    (group, waited): (&[u8], Duration),
    others: impl Iterator<Item = &'h str>,
) -> bool {
    let asked = (waited.as_millis() / RANK_PAUSE.as_millis()) as usize;
    let is_earlier = |other: &&str| (weight(group, other), *other) > (weight(group, own), own);
    others.filter(is_earlier).nth(asked).is_none()
}

/// Returns a number by which heads are put in order for an export. All heads and all versions must
/// compute the same: FNV-1a, mixed once more, as its upper bits depend little on the last bytes.
fn weight(group: &[u8], head: &str) -> u64 {
    let bytes = group.iter().chain(&[0]).chain(head.as_bytes());
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: Succession = Succession { lease: Duration::from_secs(10) };
    const HEADS: [&str; 5] = ["a", "b", "c", "d", "e"];

    fn own(name: &str) -> OwnHead<'_> {
        OwnHead { name, up: Duration::from_secs(60), is_drained: false }
    }

    fn export(group: &str, seconds: u64) -> HeadlessExport<'_> {
        let (group, since) = (group.as_bytes(), Duration::from_secs(seconds));
        HeadlessExport { group, home: None, address: AddressHead::Nobody, since }
    }

    fn takers(export: &HeadlessExport<'_>) -> Vec<&'static str> {
        let takes = |name: &&str| RULE.takes(own(name), export, HEADS.into_iter());
        HEADS.into_iter().filter(takes).collect()
    }

    #[test]
    fn one_head_takes_an_export_at_once_and_one_more_after_each_pause() {
        for path in ["/srv/one", "/srv/two", "/srv/three"] {
            for (rank, seconds) in [0, 2, 4, 6, 8].into_iter().enumerate() {
                assert_eq!(takers(&export(path, seconds)).len(), rank + 1, "{path} {seconds}");
            }
        }
        let alone = RULE.takes(own("a"), &export("/srv/one", 0), ["a"].into_iter());
        assert!(alone, "the only head that is up takes it at once");
    }

    #[test]
    fn exports_are_divided_among_all_heads() {
        let mut counts = std::collections::BTreeMap::new();
        for number in 0..1000 {
            let path = format!("/srv/{number}");
            for head in takers(&export(&path, 0)) {
                *counts.entry(head).or_insert(0) += 1;
            }
        }
        assert!(
            counts.len() == 5 && counts.values().all(|it| (150..250).contains(it)),
            "{counts:?}"
        );
    }

    /// Heads of different versions must agree.
    #[test]
    fn the_order_of_heads_does_not_change() {
        assert_eq!(weight(b"/srv/one", "a"), 2_113_405_829_040_440_125);
        assert_ne!(weight(b"/srv/a", "b"), weight(b"/srv/", "ab"));
    }

    #[test]
    fn the_home_comes_first_and_the_next_one_after_a_lease() {
        let home = |is_up, is_drained| Some(HomeHead { name: "c", is_up, is_drained });
        let with = |home, seconds| HeadlessExport { home, ..export("/srv/one", seconds) };
        assert_eq!(takers(&with(home(true, false), 0)), ["c"]);
        assert_eq!(takers(&with(home(true, false), 10)), ["c"]);
        assert_eq!(takers(&with(home(false, false), 0)).len(), 2, "c is not up but would take it");
        let late = takers(&with(home(true, false), 11));
        assert!(late.len() == 2 || late == ["c"], "{late:?}");
        let first = takers(&export("/srv/one", 0))[0];
        assert!(
            takers(&with(home(true, true), 0)).contains(&first),
            "a drained home is passed over"
        );
        let young = OwnHead { up: Duration::from_secs(10), ..own(first) };
        assert!(!RULE.takes(young, &with(home(false, false), 0), HEADS.into_iter()));
    }

    #[test]
    fn only_the_head_of_its_address_takes_an_export() {
        let with = |address| HeadlessExport { address, ..export("/srv/one", 100) };
        let takes = |own, address| RULE.takes(own, &with(address), HEADS.into_iter());
        let drained = OwnHead { is_drained: true, ..own("a") };
        assert!(!takes(own("a"), AddressHead::Other));
        assert!(takes(own("a"), AddressHead::Own { has_exports: false }));
        assert!(takes(drained, AddressHead::Own { has_exports: true }));
        assert!(!takes(drained, AddressHead::Own { has_exports: false }));
    }

    #[test]
    fn a_drained_head_takes_what_no_other_head_takes() {
        let drained = OwnHead { is_drained: true, ..own("a") };
        let takes = |seconds, others: &[&'static str]| {
            RULE.takes(drained, &export("/srv/one", seconds), others.iter().copied())
        };
        assert!(!takes(10, &[]) && takes(11, &[]));
        assert!(!takes(40, &["b"]) && takes(41, &["b"]));
    }
}
