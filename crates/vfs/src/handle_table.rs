use std::hash::Hasher;
use std::ops::Deref;
use std::sync::Arc;

use quick_cache::sync::Cache;
use siphasher::sip128::{Hasher128, SipHasher24};

use crate::limits::{HANDLE_BYTES_MAX, LONG_HANDLE_BYTES_MAX, LONG_HANDLES_MAX};
use crate::{Handle, Result, Status};

/// The handles of a file system that names its objects by up to [`LONG_HANDLE_BYTES_MAX`] bytes, as
/// another NFS server does: more than a [`Handle`] has room for.
///
/// A name of at most 47 bytes is stored in its handle. A longer one is remembered here, and its
/// handle is a digest of it, which is the same in every table and after a restart. When the table
/// is full, names that were not used lately are forgotten. The handle of a forgotten name is stale
/// until the file system meets the name again, as in a lookup. A [`LongName`] that is kept, as that
/// of an open file, stays valid.
#[derive(Debug)]
pub struct HandleTable {
    names: Cache<Digest, Arc<[u8]>>,
}

/// A name that a handle stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LongName<'h> {
    /// The name is stored in its handle.
    InHandle(&'h [u8]),
    /// The table remembers the name.
    Remembered(Arc<[u8]>),
}

type Digest = [u8; 16];

/// First byte of a handle that contains the whole name.
const WHOLE: u8 = 0;
const DIGEST: u8 = 1;

impl Default for HandleTable {
    /// A table of [`LONG_HANDLES_MAX`] names.
    fn default() -> Self {
        Self::with_capacity(LONG_HANDLES_MAX)
    }
}

impl HandleTable {
    /// A table with room for `names` names.
    #[must_use]
    pub fn with_capacity(names: usize) -> Self {
        Self { names: Cache::new(names) }
    }

    /// Returns the handle of the object with this name in the file system; remembers the name if it
    /// is not stored in the handle.
    ///
    /// # Errors
    /// [`Status::BadHandle`] if the name is empty or longer than [`LONG_HANDLE_BYTES_MAX`];
    /// [`Status::ServerFault`] if another name with the same digest is remembered.
    pub fn handle(&self, name: &[u8]) -> Result<Handle> {
        match name.len() {
            0 => Err(Status::BadHandle),
            1..HANDLE_BYTES_MAX => made_of(WHOLE, name),
            HANDLE_BYTES_MAX..=LONG_HANDLE_BYTES_MAX => {
                let digest = digest(name);
                self.remember(digest, name)?;
                made_of(DIGEST, &digest)
            }
            _ => Err(Status::BadHandle),
        }
    }

    /// Returns the name that a handle stands for.
    ///
    /// # Errors
    /// [`Status::Stale`] if the name was forgotten; [`Status::BadHandle`] if no table makes such a
    /// handle.
    pub fn name<'h>(&self, handle: &'h Handle) -> Result<LongName<'h>> {
        match handle.bytes() {
            [WHOLE, name @ ..] if !name.is_empty() => Ok(LongName::InHandle(name)),
            [DIGEST, digest @ ..] => {
                let digest: &Digest = digest.try_into().map_err(|_| Status::BadHandle)?;
                self.names.get(digest).map(LongName::Remembered).ok_or(Status::Stale)
            }
            _ => Err(Status::BadHandle),
        }
    }

    fn remember(&self, digest: Digest, name: &[u8]) -> Result<()> {
        match self.names.get(&digest) {
            Some(known) if *known == *name => Ok(()),
            Some(_) => Err(Status::ServerFault),
            None => {
                self.names.insert(digest, name.into());
                Ok(())
            }
        }
    }
}

impl Deref for LongName<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::InHandle(name) => name,
            Self::Remembered(name) => name,
        }
    }
}

fn made_of(kind: u8, rest: &[u8]) -> Result<Handle> {
    let mut bytes = [0; HANDLE_BYTES_MAX];
    bytes.iter_mut().zip([&[kind], rest].concat()).for_each(|(place, byte)| *place = byte);
    Handle::from_padded(bytes, 1 + rest.len())
}

/// The key of the hash is constant, so that a handle is the same after a restart. A server that
/// makes two names with one digest harms only its own clients.
fn digest(name: &[u8]) -> Digest {
    let mut hasher = SipHasher24::new();
    hasher.write(name);
    hasher.finish128().as_bytes()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    #[test]
    fn names_of_all_lengths_come_back() {
        let table = HandleTable::default();
        for length in 1..=LONG_HANDLE_BYTES_MAX {
            let name = vec![length as u8; length];
            let handle = table.handle(&name).unwrap();
            assert_eq!(*table.name(&handle).unwrap(), name[..], "{length} bytes");
        }
        for length in [0, LONG_HANDLE_BYTES_MAX + 1] {
            assert_eq!(table.handle(&vec![1; length]), Err(Status::BadHandle), "{length} bytes");
        }
    }

    #[test]
    fn a_short_name_stands_in_its_handle() {
        let handle = HandleTable::default().handle(&[7; 47]).unwrap();
        let other = HandleTable::default();
        assert_eq!(other.name(&handle), Ok(LongName::InHandle(&[7; 47])));
    }

    #[test]
    fn a_long_name_that_a_table_has_not_met_is_stale_until_it_has() {
        let before = HandleTable::default().handle(&[7; 48]).unwrap();
        let after = HandleTable::default();
        assert_eq!(after.name(&before), Err(Status::Stale));
        assert_eq!(after.handle(&[7; 48]), Ok(before), "the same handle after a restart");
        assert_eq!(*after.name(&before).unwrap(), [7; 48]);
    }

    /// The expected handle was computed by another implementation of SipHash-2-4-128, which was
    /// checked with the vectors of its authors. Handles are kept on disk, so they must stay the
    /// same in later versions of this program.
    #[test]
    fn the_handle_of_a_long_name_is_the_same_in_all_versions() {
        let handle = HandleTable::default().handle(&[7; 48]).unwrap();
        let digest = 0x9911_3460_fe53_35cc_47aa_b625_c996_7c56_u128;
        assert_eq!(handle.bytes(), [&[1][..], &digest.to_be_bytes()].concat());
    }

    #[test]
    fn a_table_is_bounded_and_a_name_that_is_kept_stays_good() {
        let table = HandleTable::with_capacity(100);
        let name = |number: u32| [&number.to_be_bytes()[..], &[0; 60]].concat();
        let first = table.handle(&name(0)).unwrap();
        let kept = table.name(&first).unwrap();
        let handles: Vec<_> = (1..10_000).map(|n| table.handle(&name(n)).unwrap()).collect();
        let known = handles.iter().filter(|handle| table.name(handle).is_ok()).count();
        assert!((1..=100).contains(&known), "{known} names are known");
        assert_eq!(*kept, name(0)[..]);
    }

    #[test]
    fn two_names_of_one_digest_are_not_confused() {
        let table = HandleTable::default();
        let handle = table.handle(&[7; 64]).unwrap();
        table.names.insert(digest(&[8; 64]), (&[7; 64][..]).into());
        assert_eq!(table.handle(&[8; 64]), Err(Status::ServerFault));
        assert_eq!(*table.name(&handle).unwrap(), [7; 64]);
    }

    proptest! {
        #[test]
        fn different_names_have_different_handles(
            names in vec(vec(any::<u8>(), 1..=LONG_HANDLE_BYTES_MAX), 1..50),
        ) {
            let (table, mut known) = (HandleTable::default(), HashMap::new());
            for name in &names {
                let handle = table.handle(name).unwrap();
                prop_assert_eq!(known.entry(handle).or_insert(name), &name);
                prop_assert_eq!(&*table.name(&handle).unwrap(), &name[..]);
            }
        }

        #[test]
        fn a_forged_handle_is_refused_or_names_nothing_long(bytes in vec(any::<u8>(), 1..=48)) {
            let (table, forged) = (HandleTable::default(), Handle::new(&bytes).unwrap());
            match table.name(&forged) {
                Ok(name) => prop_assert_eq!((bytes[0], &*name), (WHOLE, &bytes[1..])),
                Err(Status::Stale) => prop_assert_eq!((bytes[0], bytes.len()), (DIGEST, 17)),
                Err(status) => prop_assert_eq!(status, Status::BadHandle),
            }
        }
    }
}
