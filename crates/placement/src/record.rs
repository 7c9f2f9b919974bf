//! The place of a file, which is stored in an extended attribute of the file on the metadata
//! server. docs/formats.md has the layout of its bytes.

use comity_vfs::Handle;

use crate::PlacementKey;
use crate::limits::{
    DATA_SERVERS_MAX, MIRRORS_MAX, SERVER_NAME_BYTES_MAX, UNIT_BYTES_MAX, UNIT_BYTES_MIN,
};
use crate::mirrors::MirrorSet;
use crate::stripes::length_on;

/// The version of the bytes of a file in stripes.
const STRIPES: u8 = 1;

/// The version of the bytes of a mirrored file.
const MIRRORS: u8 = 2;

/// Prefix of the bytes for a record's MAC, so that no handle has the same MAC.
const OF_RECORDS: &[u8] = b"placement record";

/// The place of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlaceRecord {
    /// The file on the metadata server.
    pub(crate) file: Handle,
    /// The name of the file on every data server, as a number. A number is used for one file only.
    pub(crate) number: u128,
    /// The way in which its bytes lie on the data servers.
    pub(crate) spread: Spread,
    /// The names of the data servers, in the order of the stripe units.
    pub(crate) servers: Vec<Box<str>>,
}

/// The way in which the bytes of a file lie on its data servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spread {
    /// They lie in stripe units of this length in bytes, by turns.
    Stripes(u32),
    /// All of them lie on each data server but those that were found broken.
    Mirrors(MirrorSet),
}

impl PlaceRecord {
    /// The name of the file on every data server.
    pub(crate) fn name(&self) -> String {
        format!("{:032x}", self.number)
    }

    /// The mirrors that are broken; none of a file in stripes.
    pub(crate) const fn broken(&self) -> MirrorSet {
        match self.spread {
            Spread::Stripes(_) => MirrorSet::NONE,
            Spread::Mirrors(broken) => broken,
        }
    }

    /// Marks mirrors of a new file as broken.
    pub(crate) const fn leave_out(&mut self, failed: MirrorSet) {
        if let Spread::Mirrors(broken) = self.spread {
            self.spread = Spread::Mirrors(broken.and(failed));
        }
    }

    /// The length in bytes that the data file on a data server must have for a file of this size.
    pub(crate) fn length_on(&self, at: usize, size: u64) -> u64 {
        match self.spread {
            Spread::Stripes(unit_bytes) => length_on(unit_bytes, self.servers.len(), at, size),
            Spread::Mirrors(broken) if broken.has(at) => 0,
            Spread::Mirrors(_) => size,
        }
    }

    /// Returns the bytes of the attribute of the file.
    pub(crate) fn encode(&self, key: &PlacementKey) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode_place(&mut bytes);
        let mac = key.mac(OF_RECORDS, &[self.file.bytes(), &bytes]);
        bytes.extend(mac);
        bytes
    }

    /// Reads the attribute of a file; returns `None` if the metadata server did not write it for
    /// this file. The owner of a file can change the attribute by programs on the server.
    pub(crate) fn decode(key: &PlacementKey, file: &Handle, bytes: &[u8]) -> Option<Self> {
        let (body, mac) = bytes.split_last_chunk::<16>()?;
        let expected = key.mac(OF_RECORDS, &[file.bytes(), body]);
        if u128::from_be_bytes(*mac) != u128::from_be_bytes(expected) {
            return None;
        }
        let (record, rest) = Self::decode_place(file, body)?;
        rest.is_empty().then_some(record)
    }

    /// Appends the place without its file.
    pub(crate) fn encode_place(&self, bytes: &mut Vec<u8>) {
        bytes.push(match self.spread {
            Spread::Stripes(_) => STRIPES,
            Spread::Mirrors(_) => MIRRORS,
        });
        bytes.extend(self.number.to_be_bytes());
        match self.spread {
            Spread::Stripes(unit_bytes) => bytes.extend(unit_bytes.to_be_bytes()),
            Spread::Mirrors(broken) => bytes.push(broken.bits()),
        }
        bytes.push(self.servers.len() as u8);
        for name in &self.servers {
            bytes.push(name.len() as u8);
            bytes.extend(name.bytes());
        }
    }

    /// Reads the place of a file; returns it with the bytes after it.
    pub(crate) fn decode_place<'b>(file: &Handle, bytes: &'b [u8]) -> Option<(Self, &'b [u8])> {
        let (&version, rest) = bytes.split_first()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (spread, rest) = Spread::decode(version, rest)?;
        let (&count, mut rest) = rest.split_first()?;
        let mut servers = Vec::new();
        for _ in 0..count {
            let (&length, behind) = rest.split_first()?;
            let (name, behind) = behind.split_at_checked(length.into())?;
            servers.push(std::str::from_utf8(name).ok()?.into());
            rest = behind;
        }
        let number = u128::from_be_bytes(*number);
        let record = Self { file: *file, number, spread, servers };
        record.is_sound().then_some((record, rest))
    }

    fn is_sound(&self) -> bool {
        let named = |name: &str| (1..=SERVER_NAME_BYTES_MAX).contains(&name.len());
        let count = self.servers.len();
        let fits = match self.spread {
            Spread::Stripes(unit) => {
                (UNIT_BYTES_MIN..=UNIT_BYTES_MAX).contains(&unit)
                    && (1..=DATA_SERVERS_MAX).contains(&count)
            }
            Spread::Mirrors(broken) => {
                (1..=MIRRORS_MAX).contains(&count) && broken.is_part_of(count)
            }
        };
        fits && self.servers.iter().all(|name| named(name))
    }
}

impl Spread {
    /// Reads the part of a record that depends on its version; returns the rest.
    fn decode(version: u8, bytes: &[u8]) -> Option<(Self, &[u8])> {
        match version {
            STRIPES => {
                let (unit, rest) = bytes.split_first_chunk()?;
                Some((Self::Stripes(u32::from_be_bytes(*unit)), rest))
            }
            MIRRORS => {
                let (&broken, rest) = bytes.split_first()?;
                Some((Self::Mirrors(MirrorSet::of_bits(broken)), rest))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: PlacementKey = PlacementKey::new([7; 16]);

    fn file() -> Handle {
        Handle::new(b"file").unwrap()
    }

    fn record(spread: Spread) -> PlaceRecord {
        let servers = vec!["a".into(), "second".into()];
        PlaceRecord { file: file(), number: 0xfeed, spread, servers }
    }

    fn spreads() -> [Spread; 3] {
        let (none, second) = (MirrorSet::NONE, MirrorSet::of(1));
        [Spread::Stripes(UNIT_BYTES_MIN), Spread::Mirrors(none), Spread::Mirrors(second)]
    }

    #[test]
    fn a_record_is_good_for_its_own_file_only() {
        let other = Handle::new(b"other").unwrap();
        for record in spreads().map(record) {
            let bytes = record.encode(&KEY);
            assert_eq!(PlaceRecord::decode(&KEY, &file(), &bytes).as_ref(), Some(&record));
            assert_eq!(PlaceRecord::decode(&KEY, &other, &bytes), None);
            assert_eq!(PlaceRecord::decode(&PlacementKey::new([8; 16]), &file(), &bytes), None);
        }
    }

    #[test]
    fn a_file_has_a_mirror_that_is_not_broken() {
        for bits in [0b11, 0b111, 0b1000_0000] {
            let broken = record(Spread::Mirrors(MirrorSet::of_bits(bits)));
            assert_eq!(PlaceRecord::decode(&KEY, &file(), &broken.encode(&KEY)), None);
        }
    }

    #[test]
    fn the_bytes_of_a_record_stay_as_they_are() {
        let [stripes, _, mirrors] = spreads().map(|it| record(it).encode(&KEY));
        let number = [&[0; 14][..], &[0xfe, 0xed]].concat();
        let names = b"\x02\x01a\x06second";
        assert_eq!(
            stripes[..stripes.len() - 16],
            [&[1], &number[..], &[0, 1, 0, 0], names].concat()
        );
        assert_eq!(mirrors[..mirrors.len() - 16], [&[2], &number[..], &[2], names].concat());
    }

    proptest! {
        #[test]
        fn a_changed_record_is_none(flip in any::<(usize, u8)>(), at in 0..3_usize) {
            let mut bytes = record(spreads()[at]).encode(&KEY);
            let at = flip.0 % bytes.len();
            bytes[at] ^= flip.1 | 1;
            prop_assert_eq!(PlaceRecord::decode(&KEY, &file(), &bytes), None);
        }

        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..80)) {
            let mac = KEY.mac(OF_RECORDS, &[file().bytes(), &body]);
            let _ = PlaceRecord::decode(&KEY, &file(), &[&body[..], &mac].concat());
        }
    }
}
