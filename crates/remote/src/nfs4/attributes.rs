use comity_proto::nfs4::{
    Bitmap4, Fattr4, Fsid4, NfsFtype4, Nfstime4, Opaque4, Specdata4, attribute,
};
use comity_xdr::{Decoder, Encode, Encoder, Malformed, Opaque};

use crate::file::{FileKind, Metadata};

/// The attributes that are requested of an object: all that stat(2) needs.
pub const OBJECT: Bitmap4 = Bitmap4::of(&[
    attribute::TYPE,
    attribute::CHANGE,
    attribute::SIZE,
    attribute::FSID,
    attribute::FILEID,
    attribute::MODE,
    attribute::NUMLINKS,
    attribute::OWNER,
    attribute::OWNER_GROUP,
    attribute::RAWDEV,
    attribute::SPACE_USED,
    attribute::TIME_ACCESS,
    attribute::TIME_METADATA,
    attribute::TIME_MODIFY,
    attribute::MOUNTED_ON_FILEID,
]);

/// The attributes that are requested for each entry of a directory.
pub(super) const ENTRY: Bitmap4 =
    OBJECT.or(&Bitmap4::of(&[attribute::RDATTR_ERROR, attribute::FILEHANDLE]));

/// The uid of an object whose owner string is not a number.
const NOBODY: u32 = u32::MAX;

/// Encoded attributes, in the order of their numbers.
#[derive(Debug, Default)]
pub struct Values {
    mask: Bitmap4,
    values: Encoder,
}

impl Values {
    fn with(mut self, number: u32, value: &impl Encode) -> Self {
        self.mask.insert(number);
        self.values.value(value);
        self
    }

    /// Returns them as an argument.
    pub fn fattr(&self) -> Fattr4<'_> {
        Fattr4 { attrmask: self.mask, attr_vals: Opaque(self.values.bytes()) }
    }
}

/// Attributes of a new object: its mode, and the size of a file.
pub fn made(mode: u32, size: Option<u64>) -> Values {
    let values = Values::default();
    let values = match size {
        Some(size) => values.with(attribute::SIZE, &size),
        None => values,
    };
    values.with(attribute::MODE, &mode)
}

/// A user and a group as owner strings.
pub fn owned(user: u32, group: u32) -> Values {
    let [user, group] = [user, group].map(|id| id.to_string());
    let [user, group]: [Opaque4<'_>; 2] = [Opaque(user.as_bytes()), Opaque(group.as_bytes())];
    Values::default().with(attribute::OWNER, &user).with(attribute::OWNER_GROUP, &group)
}

/// Decodes attributes of an object or of an entry.
///
/// # Errors
/// Attributes that were not requested, or malformed values.
pub fn metadata(fattr: &Fattr4<'_>) -> Result<Metadata, Malformed> {
    let mut found = Metadata { kind: FileKind::Other, size: 0, user: NOBODY };
    let mut values = Decoder::new(fattr.attr_vals.0);
    for number in fattr.attrmask.iter() {
        match number {
            attribute::TYPE => found.kind = kind(values.value()?),
            attribute::SIZE => found.size = values.value()?,
            attribute::OWNER => found.user = number_of(values.value()?),
            number => pass_over(&mut values, number)?,
        }
    }
    values.finish().map(|()| found)
}

/// The uid in an owner string that is a number (RFC 8881, 5.9).
fn number_of(owner: Opaque4<'_>) -> u32 {
    str::from_utf8(owner.0).ok().and_then(|text| text.parse().ok()).unwrap_or(NOBODY)
}

const fn kind(kind: NfsFtype4) -> FileKind {
    match kind {
        NfsFtype4::Reg => FileKind::File,
        NfsFtype4::Dir => FileKind::Directory,
        NfsFtype4::Lnk => FileKind::Link,
        _ => FileKind::Other,
    }
}

fn pass_over(values: &mut Decoder<'_>, number: u32) -> Result<(), Malformed> {
    match number {
        attribute::FSID => values.value::<Fsid4>().map(drop),
        attribute::RAWDEV => values.value::<Specdata4>().map(drop),
        attribute::OWNER_GROUP | attribute::FILEHANDLE => values.value::<Opaque4<'_>>().map(drop),
        attribute::MODE | attribute::NUMLINKS | attribute::RDATTR_ERROR => {
            values.value::<u32>().map(drop)
        }
        attribute::TIME_ACCESS | attribute::TIME_METADATA | attribute::TIME_MODIFY => {
            values.value::<Nfstime4>().map(drop)
        }
        // An attribute that was not requested leaves bytes over or breaks off, which is an error.
        _ => values.value::<u64>().map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_of_a_new_object_and_owners_are_read_again() {
        let owned = owned(70_000, 12);
        assert_eq!(metadata(&owned.fattr()).unwrap().user, 70_000);
        let made = made(0o644, Some(9));
        assert_eq!(metadata(&made.fattr()).unwrap().size, 9);
        let values = Values::default().with(attribute::OWNER, &Opaque::<1024>(b"root@example"));
        assert_eq!(metadata(&values.fattr()).unwrap().user, NOBODY);
    }

    #[test]
    fn values_that_are_missing_are_noticed() {
        let fattr = Fattr4 { attrmask: OBJECT, attr_vals: Opaque(&[0, 0, 0, 1]) };
        assert!(metadata(&fattr).is_err());
    }
}
