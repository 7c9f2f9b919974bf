//! Results of the procedures, named as in RFC 1813, 3.3.
#![allow(missing_docs)]

use comity_xdr::{Decode, Decoder, Encode, Encoder, Malformed, Opaque};

use super::attributes::halves;
use super::{
    Cookieverf3, DATA_BYTES_MAX, Fattr3, Filename3, NfsFh3, Nfspath3, Nfsstat3, Nfstime3,
    PostOpAttr, StableHow, WccData, Writeverf3,
};

/// The result of a procedure: the body of OK, or a status with the body of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Result3<T, F> {
    Ok(T),
    Fail(Nfsstat3, F),
}

impl<T: Encode, F: Encode> Encode for Result3<T, F> {
    fn encode(&self, encoder: &mut Encoder) {
        match self {
            Self::Ok(body) => {
                encoder.value(&Nfsstat3::Ok);
                encoder.value(body);
            }
            Self::Fail(status, body) => {
                encoder.value(status);
                encoder.value(body);
            }
        }
    }
}

impl<'a, T: Decode<'a>, F: Decode<'a>> Decode<'a> for Result3<T, F> {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        match decoder.value()? {
            Nfsstat3::Ok => Ok(Self::Ok(decoder.value()?)),
            status => Ok(Self::Fail(status, decoder.value()?)),
        }
    }
}

pub type Getattr3res = Result3<Fattr3, ()>;
pub type Setattr3res = Result3<WccData, WccData>;
pub type Lookup3res<'a> = Result3<Lookup3resok<'a>, PostOpAttr>;
pub type Access3res = Result3<Access3resok, PostOpAttr>;
pub type Readlink3res<'a> = Result3<Readlink3resok<'a>, PostOpAttr>;
pub type Read3res<'a> = Result3<Read3resok<'a>, PostOpAttr>;
pub type Write3res = Result3<Write3resok, WccData>;
/// The results of CREATE, MKDIR, SYMLINK and MKNOD.
pub type Create3res<'a> = Result3<Create3resok<'a>, WccData>;
/// The results of REMOVE and RMDIR.
pub type Remove3res = Result3<WccData, WccData>;
pub type Rename3res = Result3<Rename3wcc, Rename3wcc>;
pub type Link3res = Result3<Link3wcc, Link3wcc>;
pub type Fsstat3res = Result3<Fsstat3resok, PostOpAttr>;
pub type Fsinfo3res = Result3<Fsinfo3resok, PostOpAttr>;
pub type Pathconf3res = Result3<Pathconf3resok, PostOpAttr>;
pub type Commit3res = Result3<Commit3resok, WccData>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Lookup3resok<'a> {
    pub object: NfsFh3<'a>,
    pub obj_attributes: PostOpAttr,
    pub dir_attributes: PostOpAttr,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Access3resok {
    pub obj_attributes: PostOpAttr,
    pub access: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Readlink3resok<'a> {
    pub symlink_attributes: PostOpAttr,
    pub data: Nfspath3<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Read3resok<'a> {
    pub file_attributes: PostOpAttr,
    pub count: u32,
    pub eof: bool,
    pub data: Opaque<'a, DATA_BYTES_MAX>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Write3resok {
    pub file_wcc: WccData,
    pub count: u32,
    pub committed: StableHow,
    pub verf: Writeverf3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Create3resok<'a> {
    pub obj: Option<NfsFh3<'a>>,
    pub obj_attributes: PostOpAttr,
    pub dir_wcc: WccData,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Rename3wcc {
    pub fromdir_wcc: WccData,
    pub todir_wcc: WccData,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct Link3wcc {
    pub file_attributes: PostOpAttr,
    pub linkdir_wcc: WccData,
}

/// The head of the results of READDIR and READDIRPLUS. Each entry follows the boolean true; after
/// the last one come false and `eof`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct DirlistHead {
    pub dir_attributes: PostOpAttr,
    pub cookieverf: Cookieverf3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Entry3<'a> {
    pub fileid: u64,
    pub name: Filename3<'a>,
    pub cookie: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Decode)]
pub struct Entryplus3<'a> {
    pub entry: Entry3<'a>,
    pub name_attributes: PostOpAttr,
    pub name_handle: Option<NfsFh3<'a>>,
}

impl Entryplus3<'_> {
    /// Appends the entry with the boolean that precedes it (`nextentry`). The fields before the
    /// name are written in one piece, and so are those between the name and the bytes of the
    /// handle.
    #[inline]
    pub fn encode_next(&self, encoder: &mut Encoder) {
        let Self { entry, name_attributes, name_handle } = self;
        let (Some(attributes), Some(handle)) = (name_attributes, name_handle) else {
            encoder.value(&true);
            encoder.value(entry);
            encoder.value(name_attributes);
            return encoder.value(name_handle);
        };
        let (fileid, name) = (halves(entry.fileid), entry.name.0);
        encoder.words([1, fileid.0, fileid.1, name.len() as u32]);
        encoder.fixed(name);
        encoder.raw(between(entry.cookie, attributes, handle.0.len()).as_flattened());
        encoder.fixed(handle.0);
    }
}

/// Words of a cookie, a boolean, attributes, a boolean and a length.
const BETWEEN: usize = 2 + 1 + Fattr3::BYTES / 4 + 1 + 1;

#[inline]
fn between(cookie: u64, attributes: &Fattr3, length: usize) -> [[u8; 4]; BETWEEN] {
    let (mut words, cookie) = ([1; BETWEEN], halves(cookie));
    if let Some((first, rest)) = words.split_first_chunk_mut() {
        *first = [cookie.0, cookie.1];
        if let Some(place) = rest.get_mut(1..).and_then(|rest| rest.first_chunk_mut()) {
            *place = attributes.words();
        }
    }
    if let Some(last) = words.last_mut() {
        *last = length as u32;
    }
    // A loop is used because the compiler may not inline `map`.
    let mut bytes = [[0; 4]; BETWEEN];
    for (place, word) in bytes.iter_mut().zip(words) {
        *place = word.to_be_bytes();
    }
    bytes
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Fsstat3resok {
    pub obj_attributes: PostOpAttr,
    pub tbytes: u64,
    pub fbytes: u64,
    pub abytes: u64,
    pub tfiles: u64,
    pub ffiles: u64,
    pub afiles: u64,
    pub invarsec: u32,
}

/// Bits of [`Fsinfo3resok::properties`].
pub mod fsf3 {
    pub const LINK: u32 = 0x0001;
    pub const SYMLINK: u32 = 0x0002;
    pub const HOMOGENEOUS: u32 = 0x0008;
    pub const CANSETTIME: u32 = 0x0010;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Fsinfo3resok {
    pub obj_attributes: PostOpAttr,
    pub rtmax: u32,
    pub rtpref: u32,
    pub rtmult: u32,
    pub wtmax: u32,
    pub wtpref: u32,
    pub wtmult: u32,
    pub dtpref: u32,
    pub maxfilesize: u64,
    pub time_delta: Nfstime3,
    pub properties: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Pathconf3resok {
    pub obj_attributes: PostOpAttr,
    pub linkmax: u32,
    pub name_max: u32,
    pub no_trunc: bool,
    pub chown_restricted: bool,
    pub case_insensitive: bool,
    pub case_preserving: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Commit3resok {
    pub file_wcc: WccData,
    pub verf: Writeverf3,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nfs3::{Ftype3, Specdata3};

    #[test]
    fn fattr3_has_its_length_on_the_wire() {
        let attr = Fattr3 {
            ftype: Ftype3::Reg,
            mode: 0o644,
            nlink: 1,
            uid: 1,
            gid: 2,
            size: 3,
            used: 4,
            rdev: Specdata3::default(),
            fsid: 5,
            fileid: 6,
            atime: Nfstime3::default(),
            mtime: Nfstime3::default(),
            ctime: Nfstime3::default(),
        };
        let mut encoder = Encoder::new();
        encoder.value(&attr);
        assert_eq!(encoder.bytes().len(), Fattr3::BYTES);
        assert_eq!(Decoder::whole(encoder.bytes()), Ok(attr));
    }

    /// The expected bytes follow RFC 1813, 3.3.17 field by field, with all optional parts and
    /// without.
    #[test]
    fn an_entry_in_one_piece_has_its_fields_in_order() {
        let attr = Fattr3 {
            ftype: Ftype3::Dir,
            mode: 0o751,
            nlink: 2,
            uid: 3,
            gid: 4,
            size: 5 << 32 | 6,
            used: 7,
            rdev: Specdata3 { major: 8, minor: 9 },
            fsid: 10 << 40,
            fileid: 11,
            atime: Nfstime3 { seconds: 12, nseconds: 13 },
            mtime: Nfstime3 { seconds: 14, nseconds: 15 },
            ctime: Nfstime3 { seconds: 16, nseconds: 17 },
        };
        let entry = Entry3 { fileid: 18, name: Opaque(b"named"), cookie: 19 << 32 | 20 };
        for (name_attributes, name_handle) in [
            (Some(attr), Some(Opaque(&b"handle"[..]))),
            (Some(attr), None),
            (None, Some(Opaque(b"handle"))),
            (None, None),
        ] {
            let whole = Entryplus3 { entry, name_attributes, name_handle };
            let (mut encoder, mut fields) = (Encoder::new(), Encoder::new());
            whole.encode_next(&mut encoder);
            fields.value(&true);
            fields.value(&entry);
            fields.value(&name_attributes);
            fields.value(&name_handle);
            assert_eq!(encoder.bytes(), fields.bytes());
            assert_eq!(Decoder::whole(encoder.bytes()), Ok(Some(whole)));
        }
    }

    #[test]
    fn a_failure_carries_its_own_body() {
        let failed: Lookup3res<'_> = Result3::Fail(Nfsstat3::NoEnt, None);
        let mut encoder = Encoder::new();
        encoder.value(&failed);
        assert_eq!(encoder.bytes(), [0, 0, 0, 2, 0, 0, 0, 0]);
    }
}
