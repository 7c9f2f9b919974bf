//! Results of access checks by the file system below.
//!
//! A page is shown only to callers that the file system below has authorised. A result is valid for
//! a generation of the object: until another client changes it or its rights change.

use comity_vfs::{Access, Cred, Disk, Handle};
use quick_cache::sync::Cache;
use siphasher::sip128::{Hasher128, SipHasher24};
use std::hash::{Hash, Hasher};

use crate::limits::VERDICTS_MAX;

/// A caller: user, group and supplementary groups, hashed with 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CallerId(u128);

impl CallerId {
    pub(crate) fn of(cred: &Cred<Disk>) -> Self {
        let mut hasher = SipHasher24::new();
        cred.hash(&mut hasher);
        hasher.write_usize(cred.groups.len());
        Self(hasher.finish128().into())
    }
}

/// Results by caller and object.
pub(crate) struct VerdictCache {
    known: Cache<(CallerId, Handle), KnownVerdict>,
}

/// The rights that were requested and granted.
#[derive(Debug, Clone, Copy)]
struct KnownVerdict {
    asked: Access,
    granted: Access,
    generation: u64,
}

impl VerdictCache {
    pub(crate) fn new() -> Self {
        Self { known: Cache::new(VERDICTS_MAX) }
    }

    /// The rights among `wanted` that a caller has to an object, if all of them were requested in
    /// this generation.
    pub(crate) fn get(
        &self,
        caller: CallerId,
        node: &Handle,
        wanted: Access,
        generation: u64,
    ) -> Option<Access> {
        let known = self.known.get(&(caller, *node))?;
        let is_known = known.generation == generation && known.asked.contains(wanted);
        is_known.then_some(known.granted & wanted)
    }

    /// Stores a result, merged with earlier ones of the same generation.
    pub(crate) fn note(
        &self,
        caller: CallerId,
        node: &Handle,
        (asked, granted): (Access, Access),
        generation: u64,
    ) {
        let known = self.known.get(&(caller, *node)).filter(|known| known.generation == generation);
        let verdict = match known {
            Some(known) => KnownVerdict {
                asked: known.asked | asked,
                granted: known.granted | granted,
                generation,
            },
            None => KnownVerdict { asked, granted, generation },
        };
        self.known.insert((caller, *node), verdict);
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::{Gid, Uid};

    use super::*;

    fn caller(uid: u32, groups: &[u32]) -> CallerId {
        let cred = Cred::new(Uid::new(uid), Gid::new(1));
        CallerId::of(&cred.with_groups(groups.iter().map(|gid| Gid::new(*gid))))
    }

    #[test]
    fn callers_differ_by_user_and_groups() {
        assert_eq!(caller(1, &[2]), caller(1, &[2]));
        for other in [caller(2, &[2]), caller(1, &[]), caller(1, &[3]), caller(1, &[2, 2])] {
            assert_ne!(caller(1, &[2]), other);
        }
    }

    #[test]
    fn a_result_is_valid_for_its_caller_and_generation() {
        let (cache, node) = (VerdictCache::new(), Handle::new(b"node").unwrap());
        let read = Access::READ;
        cache.note(caller(1, &[]), &node, (read | Access::MODIFY, read), 5);
        let wanted = read | Access::MODIFY;
        assert_eq!(cache.get(caller(1, &[]), &node, wanted, 5), Some(read));
        assert_eq!(cache.get(caller(2, &[]), &node, read, 5), None);
        assert_eq!(cache.get(caller(1, &[]), &node, read, 6), None);
        assert_eq!(cache.get(caller(1, &[]), &node, Access::EXECUTE, 5), None, "never asked");
        cache.note(caller(1, &[]), &node, (Access::EXECUTE, Access::EXECUTE), 5);
        assert_eq!(
            cache.get(caller(1, &[]), &node, wanted | Access::EXECUTE, 5),
            Some(read | Access::EXECUTE)
        );
    }
}
