//! Conversions of attributes between NFSv4 and `vfs` (RFC 8881, 5).

use comity_idmap::{Owner, Owners};
use comity_proto::nfs4::{
    Bitmap4, Fattr4, Fsid4, NfsFh4, NfsFtype4, Nfsstat4, Nfstime4, Owner4, Settime4, Specdata4,
    attribute as a,
};
use comity_vfs::{
    Attr, Device, Disk, FileType, Gid, HandleTable, Mode, Node, SetAttr, SetTime, Time, Uid,
};
use comity_xdr::{Decoder, Encode, Encoder, Malformed, Opaque};

use crate::server_handle::ServerHandle;

/// The attributes needed to make an [`Attr`].
pub(super) const OBJECT: Bitmap4 = Bitmap4::of(&[
    a::TYPE,
    a::CHANGE,
    a::SIZE,
    a::FSID,
    a::FILEID,
    a::MODE,
    a::NUMLINKS,
    a::OWNER,
    a::OWNER_GROUP,
    a::RAWDEV,
    a::SPACE_USED,
    a::TIME_ACCESS,
    a::TIME_METADATA,
    a::TIME_MODIFY,
    a::MOUNTED_ON_FILEID,
]);

/// The attributes requested for each entry of a listing with attributes.
pub(super) const ENTRY: Bitmap4 = OBJECT.or(&Bitmap4::of(&[a::RDATTR_ERROR, a::FILEHANDLE]));

/// The attributes requested for each entry of a listing of names.
pub(super) const ENTRY_NAME: Bitmap4 =
    Bitmap4::of(&[a::RDATTR_ERROR, a::FILEID, a::MOUNTED_ON_FILEID]);

/// The uid and gid of an owner that is unknown here: nobody.
const NOBODY: u32 = 65_534;

/// The attributes of an object in a reply.
#[derive(Debug, Default)]
pub(super) struct KnownAttributes {
    file_type: Option<FileType>,
    change: u64,
    size: u64,
    fsid: Fsid4,
    pub(super) fileid: u64,
    mode: u32,
    links: Option<u32>,
    uid: u32,
    gid: u32,
    device: Device,
    used: u64,
    atime: Time,
    ctime: Time,
    mtime: Time,
    pub(super) mounted_on_fileid: Option<u64>,
    handle: Option<ServerHandle>,
    error: Option<Nfsstat4>,
}

impl KnownAttributes {
    /// Decodes attributes.
    ///
    /// # Errors
    /// The mask holds attributes that were not requested, or the values are malformed.
    pub(super) fn decode(fattr: &Fattr4<'_>, owners: &Owners) -> Result<Self, Malformed> {
        let mut known = Self::default();
        let mut values = Decoder::new(fattr.attr_vals.0);
        for number in fattr.attrmask.iter() {
            known.decode_one(number, &mut values, owners)?;
        }
        values.finish()?;
        Ok(known)
    }

    fn decode_one(
        &mut self,
        number: u32,
        values: &mut Decoder<'_>,
        owners: &Owners,
    ) -> Result<(), Malformed> {
        match number {
            a::TYPE => self.file_type = Some(file_type(values.value()?)),
            a::CHANGE => self.change = values.value()?,
            a::SIZE => self.size = values.value()?,
            a::FSID => self.fsid = values.value()?,
            a::RDATTR_ERROR => self.error = Some(values.value()?),
            a::FILEHANDLE => self.handle = ServerHandle::new(values.value::<NfsFh4<'_>>()?.0),
            a::FILEID => self.fileid = values.value()?,
            a::MODE => self.mode = values.value()?,
            a::NUMLINKS => self.links = Some(values.value()?),
            a::OWNER => self.uid = user(values.value()?, owners),
            a::OWNER_GROUP => self.gid = group(values.value()?, owners),
            a::RAWDEV => self.device = device(values.value()?),
            a::SPACE_USED => self.used = values.value()?,
            a::TIME_ACCESS => self.atime = time(values.value()?),
            a::TIME_METADATA => self.ctime = time(values.value()?),
            a::TIME_MODIFY => self.mtime = time(values.value()?),
            a::MOUNTED_ON_FILEID => self.mounted_on_fileid = Some(values.value()?),
            found => return Err(Malformed::Discriminant { of: "attribute asked for", found }),
        }
        Ok(())
    }

    /// The attributes of an object; `None` if the reply lacks its type.
    pub(super) fn attr(&self) -> Option<Attr<Disk>> {
        Some(Attr {
            file_type: self.file_type?,
            mode: Mode::new(self.mode),
            links: self.links.unwrap_or(1),
            uid: Uid::new(self.uid),
            gid: Gid::new(self.gid),
            size: self.size,
            used: self.used,
            device: self.device,
            fsid: fsid(self.fsid),
            fileid: self.fileid,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
            change: self.change,
        })
    }

    /// The object of a directory entry; `None` if its handle or type is missing.
    pub(super) fn node(&self, handles: &HandleTable) -> Option<Node<Disk>> {
        let handle = handles.handle(self.handle?.bytes()).ok()?;
        Some(Node { handle, attr: self.attr()? })
    }

    /// The fileid of a directory entry. For a mount point this is the fileid of the directory it
    /// covers.
    pub(super) fn listed_fileid(&self) -> u64 {
        self.mounted_on_fileid.unwrap_or(self.fileid)
    }
}

const fn file_type(found: NfsFtype4) -> FileType {
    match found {
        NfsFtype4::Reg | NfsFtype4::Namedattr => FileType::Regular,
        NfsFtype4::Dir | NfsFtype4::Attrdir => FileType::Directory,
        NfsFtype4::Blk => FileType::Block,
        NfsFtype4::Chr => FileType::Character,
        NfsFtype4::Lnk => FileType::Symlink,
        NfsFtype4::Sock => FileType::Socket,
        NfsFtype4::Fifo => FileType::Fifo,
    }
}

/// Combines the two numbers of a file system id into one.
const fn fsid(fsid: Fsid4) -> u64 {
    fsid.major ^ fsid.minor.rotate_left(32)
}

const fn device(found: Specdata4) -> Device {
    Device { major: found.major, minor: found.minor }
}

const fn time(found: Nfstime4) -> Time {
    Time { seconds: found.seconds, nanoseconds: found.nseconds }
}

/// The user that an owner string names. Ids of this machine are sent unchanged.
fn user(text: Owner4<'_>, owners: &Owners) -> u32 {
    owners.user_in(text.0).map_or(NOBODY, |uid| uid.number())
}

fn group(text: Owner4<'_>, owners: &Owners) -> u32 {
    owners.group_in(text.0).map_or(NOBODY, |gid| gid.number())
}

/// Encoded attributes, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct AttributeValues {
    mask: Bitmap4,
    values: Encoder,
}

impl AttributeValues {
    /// Encodes the attributes to set.
    pub(super) fn to_set(set: &SetAttr<Disk>, owners: &Owners) -> Self {
        let mut values = Self::default();
        values.add(a::SIZE, set.size);
        values.add(a::MODE, set.mode.map(Mode::bits));
        let user = set.uid.map(|uid| text(owners.user_out(uid.carried_over())));
        values.add(a::OWNER, user.as_ref().map(|text| owner(text)));
        let group = set.gid.map(|gid| text(owners.group_out(gid.carried_over())));
        values.add(a::OWNER_GROUP, group.as_ref().map(|text| owner(text)));
        values.add(a::TIME_ACCESS_SET, set.atime.map(settime));
        values.add(a::TIME_MODIFY_SET, set.mtime.map(settime));
        values
    }

    /// Encodes one attribute.
    pub(super) fn one(number: u32, value: &impl Encode) -> Self {
        let mut values = Self::default();
        values.add(number, Some(value));
        values
    }

    fn add(&mut self, number: u32, value: Option<impl Encode>) {
        if let Some(value) = value {
            self.mask.insert(number);
            self.values.value(&value);
        }
    }

    /// Returns them as an argument.
    pub(super) fn fattr(&self) -> Fattr4<'_> {
        Fattr4 { attrmask: self.mask, attr_vals: Opaque(self.values.bytes()) }
    }
}

fn text(owner: Owner<'_>) -> String {
    owner.to_string()
}

const fn owner(text: &str) -> Owner4<'_> {
    Opaque(text.as_bytes())
}

const fn settime(wanted: SetTime) -> Settime4 {
    match wanted {
        SetTime::Now => Settime4::SetToServerTime,
        SetTime::To(time) => Settime4::SetToClientTime(nfstime4(time)),
    }
}

/// A time on the wire.
pub(super) const fn nfstime4(time: Time) -> Nfstime4 {
    Nfstime4 { seconds: time.seconds, nseconds: time.nanoseconds }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_in_the_order_of_their_numbers() {
        let mut values = AttributeValues::default();
        values.add(a::TYPE, Some(NfsFtype4::Chr));
        values.add(a::CHANGE, Some(77_u64));
        values.add(a::FSID, Some(Fsid4 { major: 1, minor: 2 }));
        values.add(a::FILEHANDLE, Some(Opaque::<'_, 128>(b"handle")));
        values.add(a::OWNER, Some(owner("70000")));
        values.add(a::OWNER_GROUP, Some(owner("somebody@example.org")));
        values.add(a::RAWDEV, Some(Specdata4 { major: 5, minor: 6 }));
        let known = KnownAttributes::decode(&values.fattr(), &Owners::default()).unwrap();
        let handles = HandleTable::default();
        let node = known.node(&handles).unwrap();
        assert_eq!(*handles.name(&node.handle).unwrap(), *b"handle");
        let attr = node.attr;
        assert_eq!((attr.file_type, attr.change), (FileType::Character, 77));
        assert_eq!((attr.uid.number(), attr.gid.number()), (70_000, NOBODY));
        assert_eq!(attr.device, Device { major: 5, minor: 6 });
        assert_eq!(attr.fsid, 1 ^ 2 << 32);
    }

    #[test]
    fn attributes_that_were_not_asked_for_or_break_off_are_refused() {
        let values = AttributeValues::one(a::ACLSUPPORT, &3_u32);
        assert!(KnownAttributes::decode(&values.fattr(), &Owners::default()).is_err());
        let short = Fattr4 { attrmask: OBJECT, attr_vals: Opaque(&[0, 0, 0, 1]) };
        assert!(KnownAttributes::decode(&short, &Owners::default()).is_err());
    }

    #[test]
    fn attributes_are_set_in_the_order_of_their_numbers() {
        let set = SetAttr {
            mode: Some(Mode::new(0o640)),
            uid: Some(Uid::new(9)),
            size: Some(7),
            mtime: Some(SetTime::Now),
            ..SetAttr::default()
        };
        let values = AttributeValues::to_set(&set, &Owners::default());
        let fattr = values.fattr();
        let numbers: Vec<u32> = fattr.attrmask.iter().collect();
        assert_eq!(numbers, [a::SIZE, a::MODE, a::OWNER, a::TIME_MODIFY_SET]);
        let mut decoder = Decoder::new(fattr.attr_vals.0);
        assert_eq!(decoder.value::<u64>(), Ok(7));
        assert_eq!(decoder.value::<u32>(), Ok(0o640));
        assert_eq!(decoder.value::<Owner4<'_>>(), Ok(owner("9")));
        assert_eq!(decoder.value::<Settime4>(), Ok(Settime4::SetToServerTime));
    }
}
