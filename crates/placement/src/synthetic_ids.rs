use comity_vfs::Result;

use crate::random::random;

/// The lowest uid and gid that no mirror has. Clients that only read have this uid.
const FIRST: u32 = 1 << 30;

/// The owner of a mirror, as far as this process knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MirrorOwner {
    /// No layout names the owner.
    Unused,
    /// Layouts name these ids.
    Used(SyntheticIds),
}

/// A user and a group that are nobody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SyntheticIds {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl SyntheticIds {
    /// Draws ids that no earlier layout has named.
    pub(crate) fn draw() -> Result<Self> {
        let below = |bytes| FIRST + 1 + u32::from_be_bytes(bytes) % (FIRST - 1);
        Ok(Self { uid: below(random()?), gid: below(random()?) })
    }

    /// The ids of a client that may write, or only read.
    pub(crate) const fn of_client(self, writes: bool) -> Self {
        if writes { self } else { Self { uid: FIRST, gid: self.gid } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_nobodys_and_readers_are_not_owners() {
        for _ in 0..1000 {
            let ids = SyntheticIds::draw().unwrap();
            assert!([ids.uid, ids.gid].iter().all(|id| (FIRST + 1..1 << 31).contains(id)));
            assert_eq!(ids.of_client(true), ids);
            assert_ne!(ids.of_client(false).uid, ids.uid);
            assert_eq!(ids.of_client(false).gid, ids.gid);
        }
    }
}
