use comity_xdr::{Decode, Encode, Encoder};

use super::{Ftype3, Nfstime3, Specdata3};

/// Attributes of an object: `fattr3`, always [`Fattr3::BYTES`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Decode)]
#[allow(missing_docs)]
pub struct Fattr3 {
    pub ftype: Ftype3,
    pub mode: u32,
    pub nlink: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub used: u64,
    pub rdev: Specdata3,
    pub fsid: u64,
    pub fileid: u64,
    pub atime: Nfstime3,
    pub mtime: Nfstime3,
    pub ctime: Nfstime3,
}

impl Fattr3 {
    /// Its length on the wire.
    pub const BYTES: usize = 84;
}

impl Fattr3 {
    /// Its words on the wire.
    #[inline]
    pub(super) const fn words(&self) -> [u32; Self::BYTES / 4] {
        let Self { ftype, mode, nlink, uid, gid, size, used, rdev, fsid, fileid, .. } = *self;
        let Self { atime, mtime, ctime, .. } = *self;
        let (size, used) = (halves(size), halves(used));
        let (fsid, fileid) = (halves(fsid), halves(fileid));
        [
            ftype as u32,
            mode,
            nlink,
            uid,
            gid,
            size.0,
            size.1,
            used.0,
            used.1,
            rdev.major,
            rdev.minor,
            fsid.0,
            fsid.1,
            fileid.0,
            fileid.1,
            atime.seconds,
            atime.nseconds,
            mtime.seconds,
            mtime.nseconds,
            ctime.seconds,
            ctime.nseconds,
        ]
    }
}

/// Encoded in one piece, because nearly every reply carries one or two of them.
impl Encode for Fattr3 {
    #[inline(always)]
    fn encode(&self, encoder: &mut Encoder) {
        let mut bytes = [0; Self::BYTES];
        for (place, word) in bytes.as_chunks_mut::<4>().0.iter_mut().zip(self.words()) {
            *place = word.to_be_bytes();
        }
        encoder.raw(&bytes);
    }
}

/// The two words of a 64-bit number, the upper one first.
pub(super) const fn halves(number: u64) -> (u32, u32) {
    ((number >> 32) as u32, number as u32)
}

/// Attributes after an operation, if the server has them: `post_op_attr`.
pub type PostOpAttr = Option<Fattr3>;

/// The attributes by which a client validates its cache: `wcc_attr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
#[allow(missing_docs)]
pub struct WccAttr {
    pub size: u64,
    pub mtime: Nfstime3,
    pub ctime: Nfstime3,
}

/// The attributes of an object before and after an operation: `wcc_data`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
#[allow(missing_docs)]
pub struct WccData {
    pub before: Option<WccAttr>,
    pub after: PostOpAttr,
}

/// The new value of a time: `set_atime`, `set_mtime`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub enum SetTime3 {
    /// Do not change it.
    #[default]
    #[xdr(0)]
    DontChange,
    /// Set it to the server's time.
    #[xdr(1)]
    SetToServerTime,
    /// Set it to this time.
    #[xdr(2)]
    SetToClientTime(Nfstime3),
}

/// Attributes to set: `sattr3`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
#[allow(missing_docs)]
pub struct Sattr3 {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u64>,
    pub atime: SetTime3,
    pub mtime: SetTime3,
}
