//! The place of a file, which is stored in an extended attribute of the file on the metadata
//! server. docs/formats.md has the layout of its bytes.

use comity_vfs::Handle;

use crate::PlacementKey;
use crate::limits::{DATA_SERVERS_MAX, SERVER_NAME_BYTES_MAX, UNIT_BYTES_MAX, UNIT_BYTES_MIN};

/// The version of the bytes.
const VERSION: u8 = 1;

/// Prefix of the bytes for a record's MAC, so that no handle has the same MAC.
const OF_RECORDS: &[u8] = b"placement record";

/// The place of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlaceRecord {
    /// The file on the metadata server.
    pub(crate) file: Handle,
    /// The name of the file on every data server, as a number. A number is used for one file only.
    pub(crate) number: u128,
    /// The length of a stripe unit in bytes.
    pub(crate) unit_bytes: u32,
    /// The names of the data servers, in the order of the stripe units.
    pub(crate) servers: Vec<Box<str>>,
}

impl PlaceRecord {
    /// The name of the file on every data server.
    pub(crate) fn name(&self) -> String {
        format!("{:032x}", self.number)
    }

    /// Returns the bytes of the attribute of the file.
    pub(crate) fn encode(&self, key: &PlacementKey) -> Vec<u8> {
        let mut bytes = vec![VERSION];
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
        let (record, rest) = Self::decode_place(file, body.strip_prefix(&[VERSION])?)?;
        rest.is_empty().then_some(record)
    }

    /// Appends the place without its file.
    pub(crate) fn encode_place(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.number.to_be_bytes());
        bytes.extend(self.unit_bytes.to_be_bytes());
        bytes.push(self.servers.len() as u8);
        for name in &self.servers {
            bytes.push(name.len() as u8);
            bytes.extend(name.bytes());
        }
    }

    /// Reads the place of a file; returns it with the bytes behind it.
    pub(crate) fn decode_place<'b>(file: &Handle, bytes: &'b [u8]) -> Option<(Self, &'b [u8])> {
        let (number, rest) = bytes.split_first_chunk()?;
        let (unit, rest) = rest.split_first_chunk()?;
        let (&count, mut rest) = rest.split_first()?;
        let mut servers = Vec::new();
        for _ in 0..count {
            let (&length, behind) = rest.split_first()?;
            let (name, behind) = behind.split_at_checked(length.into())?;
            servers.push(std::str::from_utf8(name).ok()?.into());
            rest = behind;
        }
        let (number, unit_bytes) = (u128::from_be_bytes(*number), u32::from_be_bytes(*unit));
        let record = Self { file: *file, number, unit_bytes, servers };
        record.is_sound().then_some((record, rest))
    }

    fn is_sound(&self) -> bool {
        let named = |name: &str| (1..=SERVER_NAME_BYTES_MAX).contains(&name.len());
        (UNIT_BYTES_MIN..=UNIT_BYTES_MAX).contains(&self.unit_bytes)
            && (1..=DATA_SERVERS_MAX).contains(&self.servers.len())
            && self.servers.iter().all(|name| named(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const KEY: PlacementKey = PlacementKey::new([7; 16]);

    fn record(file: Handle) -> PlaceRecord {
        let servers = vec!["a".into(), "second".into()];
        PlaceRecord { file, number: 0xfeed, unit_bytes: UNIT_BYTES_MIN, servers }
    }

    #[test]
    fn a_record_is_good_for_its_own_file_only() {
        let (file, other) = (Handle::new(b"file").unwrap(), Handle::new(b"other").unwrap());
        let bytes = record(file).encode(&KEY);
        assert_eq!(PlaceRecord::decode(&KEY, &file, &bytes), Some(record(file)));
        assert_eq!(PlaceRecord::decode(&KEY, &other, &bytes), None);
        assert_eq!(PlaceRecord::decode(&PlacementKey::new([8; 16]), &file, &bytes), None);
    }

    proptest! {
        #[test]
        fn a_changed_record_is_none(flip in any::<(usize, u8)>()) {
            let file = Handle::new(b"file").unwrap();
            let mut bytes = record(file).encode(&KEY);
            let at = flip.0 % bytes.len();
            bytes[at] ^= flip.1 | 1;
            prop_assert_eq!(PlaceRecord::decode(&KEY, &file, &bytes), None);
        }

        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..80)) {
            let file = Handle::new(b"file").unwrap();
            let mac = KEY.mac(OF_RECORDS, &[file.bytes(), &body]);
            let _ = PlaceRecord::decode(&KEY, &file, &[&body[..], &mac].concat());
        }
    }
}
