//! The label of a data file says which file it belongs to. It is an extended attribute on the data
//! server; docs/formats.md has the layout of its bytes.

use comity_vfs::{Attr, Disk, Gid, Handle, Mode, Uid};

use crate::PlacementKey;
use crate::limits::{PATH_BYTES_MAX, PLACEMENT_NAME_BYTES_MAX};
use crate::record::PlaceRecord;

/// The extended attribute of a data file with its label.
pub(crate) const LABEL_ATTRIBUTE: &[u8] = b"comity.label";

/// The version of the bytes.
const VERSION: u8 = 1;

/// Prefix of the bytes for a label's MAC, so that neither a record nor a handle has the same MAC.
const OF_LABELS: &[u8] = b"data file label";

/// The label of one data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Label {
    /// The name of the placement, as several may use one data server.
    pub(crate) placement: Box<[u8]>,
    /// The file and its place.
    pub(crate) record: PlaceRecord,
    /// The number of the data server among those of the file.
    pub(crate) at: u8,
    /// The owner of the file when the label was written.
    pub(crate) owner: (Uid<Disk>, Gid<Disk>),
    /// The mode of the file when the label was written.
    pub(crate) mode: Mode,
    /// The path of the file below the top of the placement when the label was written, without a
    /// slash at the start; empty if it was not known.
    pub(crate) path: Box<[u8]>,
}

impl Label {
    /// The label of the data file on the first data server of a file.
    pub(crate) fn new(
        placement: &[u8],
        record: &PlaceRecord,
        attr: &Attr<Disk>,
        path: &[u8],
    ) -> Self {
        let (owner, mode) = ((attr.uid, attr.gid), attr.mode);
        let path = if path.len() <= PATH_BYTES_MAX { path } else { &[] };
        let (placement, path) = (placement_name(placement).into(), path.into());
        Self { placement, record: record.clone(), at: 0, owner, mode, path }
    }

    /// Returns the bytes of the attribute.
    pub(crate) fn encode(&self, key: &PlacementKey) -> Vec<u8> {
        let mut bytes = vec![VERSION];
        append(&mut bytes, &self.placement);
        append(&mut bytes, self.record.file.bytes());
        self.record.encode_place(&mut bytes);
        bytes.push(self.at);
        for number in [self.owner.0.number(), self.owner.1.number(), self.mode.bits()] {
            bytes.extend(number.to_be_bytes());
        }
        append(&mut bytes, &self.path);
        let mac = key.mac(OF_LABELS, &[&bytes]);
        bytes.extend(mac);
        bytes
    }

    /// Reads the attribute; returns `None` if no metadata server with this key wrote it.
    pub(crate) fn decode(key: &PlacementKey, bytes: &[u8]) -> Option<Self> {
        let (body, mac) = bytes.split_last_chunk::<16>()?;
        let expected = key.mac(OF_LABELS, &[body]);
        if u128::from_be_bytes(*mac) != u128::from_be_bytes(expected) {
            return None;
        }
        let (placement, rest) = take(body.strip_prefix(&[VERSION])?)?;
        let (file, rest) = take(rest)?;
        let (record, rest) = PlaceRecord::decode_place(&Handle::new(file).ok()?, rest)?;
        let (&at, rest) = rest.split_first()?;
        let (uid, rest) = number(rest)?;
        let (gid, rest) = number(rest)?;
        let (mode, rest) = number(rest)?;
        let (path, rest) = take(rest)?;
        let is_whole = rest.is_empty() && usize::from(at) < record.servers.len();
        let (owner, mode) = ((Uid::new(uid), Gid::new(gid)), Mode::new(mode));
        let (placement, path) = (placement.into(), path.into());
        is_whole.then_some(Self { placement, record, at, owner, mode, path })
    }
}

/// The name of a placement as labels have it.
pub(crate) fn placement_name(name: &[u8]) -> &[u8] {
    let cut = name.len().saturating_sub(PLACEMENT_NAME_BYTES_MAX);
    name.get(cut..).unwrap_or_default()
}

/// Appends bytes of at most 65,535 with their length.
fn append(bytes: &mut Vec<u8>, part: &[u8]) {
    bytes.extend((part.len() as u16).to_be_bytes());
    bytes.extend(part);
}

fn take(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u16::from_be_bytes(*length).into())
}

fn number(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (number, rest) = bytes.split_first_chunk()?;
    Some((u32::from_be_bytes(*number), rest))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::UNIT_BYTES_MIN;
    use crate::record::Spread;

    const KEY: PlacementKey = PlacementKey::new([7; 16]);

    fn label(path: &[u8]) -> Label {
        let file = Handle::new(b"file").unwrap();
        let (spread, servers) = (Spread::Stripes(UNIT_BYTES_MIN), vec!["a".into(), "b".into()]);
        let record = PlaceRecord { file, number: 0xfeed, spread, servers };
        let owner = (Uid::new(1001), Gid::new(100));
        let (placement, path) = (b"/srv"[..].into(), path.into());
        Label { placement, record, at: 1, owner, mode: Mode::new(0o640), path }
    }

    #[test]
    fn a_label_of_a_data_server_that_the_file_does_not_have_is_none() {
        let wrong = Label { at: 2, ..label(b"f") };
        assert_eq!(Label::decode(&KEY, &wrong.encode(&KEY)), None);
    }

    proptest! {
        #[test]
        fn a_label_is_read_as_it_was_written(
            path in proptest::collection::vec(any::<u8>(), 0..PATH_BYTES_MAX),
            flip in any::<(usize, u8)>(),
        ) {
            let mut bytes = label(&path).encode(&KEY);
            prop_assert_eq!(Label::decode(&KEY, &bytes), Some(label(&path)));
            prop_assert_eq!(Label::decode(&PlacementKey::new([8; 16]), &bytes), None);
            let at = flip.0 % bytes.len();
            bytes[at] ^= flip.1 | 1;
            prop_assert_eq!(Label::decode(&KEY, &bytes), None);
        }

        #[test]
        fn no_bytes_make_it_panic(body in proptest::collection::vec(any::<u8>(), 0..90)) {
            let mac = KEY.mac(OF_LABELS, &[&body]);
            let _ = Label::decode(&KEY, &[&body[..], &mac].concat());
        }
    }
}
