use std::time::{SystemTime, UNIX_EPOCH};

use crate::limits::{DEVICE_MAJOR_MAX, DEVICE_MINOR_MAX};
use crate::{Gid, IdDomain, Result, Status, Uid};

/// A moment: seconds and nanoseconds since 1970; negative seconds are before 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Time {
    /// Whole seconds.
    pub seconds: i64,
    /// Nanoseconds within the second, below 1,000,000,000.
    pub nanoseconds: u32,
}

impl Time {
    /// The change attribute of an object whose ctime this is, where the file system has no counter
    /// of changes: nanoseconds since 1970 (RFC 7862, 12.2.3 calls that TIME_METADATA).
    #[must_use]
    pub const fn change(self) -> u64 {
        const NANOSECONDS: u64 = 1_000_000_000;
        let seconds = (self.seconds as u64).wrapping_mul(NANOSECONDS);
        seconds.wrapping_add(self.nanoseconds as u64)
    }
}

impl From<SystemTime> for Time {
    /// A time before 1970 becomes the start of 1970: such a time comes from a clock that is wrong.
    fn from(moment: SystemTime) -> Self {
        let since = moment.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() }
    }
}

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileType {
    /// A regular file.
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A block device.
    Block,
    /// A character device.
    Character,
    /// A named pipe.
    Fifo,
    /// A UNIX socket.
    Socket,
}

/// A device's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Device {
    /// The number of the driver.
    pub major: u32,
    /// The number of the device.
    pub minor: u32,
}

impl Device {
    /// Returns the numbers unchanged if Linux can have such a device.
    ///
    /// # Errors
    /// [`Status::Inval`] if a number is above [`DEVICE_MAJOR_MAX`] or [`DEVICE_MINOR_MAX`].
    pub fn checked(self) -> Result<Self> {
        let fits = self.major <= DEVICE_MAJOR_MAX && self.minor <= DEVICE_MINOR_MAX;
        if fits { Ok(self) } else { Err(Status::Inval) }
    }
}

/// Permission bits: 0o7777, set-id and sticky bits among them; never the file type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Mode(u16);

impl Mode {
    /// Makes a mode of the permission bits of `bits`; bits above 0o7777 are dropped.
    #[must_use]
    pub const fn new(bits: u32) -> Self {
        Self((bits & 0o7777) as u16)
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0 as u32
    }
}

/// The attributes of an object, with ids on side `S`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attr<S: IdDomain> {
    /// Type of the object.
    pub file_type: FileType,
    /// Permission bits.
    pub mode: Mode,
    /// Number of hard links.
    pub links: u32,
    /// Owner.
    pub uid: Uid<S>,
    /// Group.
    pub gid: Gid<S>,
    /// Length in bytes.
    pub size: u64,
    /// Bytes of storage that the object uses.
    pub used: u64,
    /// Numbers of a device; zeros for other objects.
    pub device: Device,
    /// Number of the file system.
    pub fsid: u64,
    /// Number of the object in its file system.
    pub fileid: u64,
    /// Last access.
    pub atime: Time,
    /// Last change of data.
    pub mtime: Time,
    /// Last change of data or attributes; grows with every change the file system can tell apart.
    pub ctime: Time,
    /// The change attribute: it differs after every change of data or attributes (RFC 8881,
    /// 5.8.1.4). A file system without such a counter makes it from the ctime ([`Time::change`]); a
    /// mount of another server has that server's, which cannot be computed from the ctime.
    pub change: u64,
}

impl<S: IdDomain> Attr<S> {
    /// Returns the attributes of a file whose newest data is still at a client: the length is
    /// `size`, and the times of change are `now`.
    #[must_use]
    pub const fn written(self, size: u64, now: Time) -> Self {
        Self { size, mtime: now, ctime: now, change: now.change(), ..self }
    }

    /// Converts the ids. There is no other way to convert attributes to the other side.
    #[must_use]
    #[inline]
    pub fn with_ids<T: IdDomain>(self, uid: Uid<T>, gid: Gid<T>) -> Attr<T> {
        let Self { file_type, mode, links, size, used, device, fsid, fileid, .. } = self;
        let Self { atime, mtime, ctime, change, .. } = self;
        Attr {
            file_type,
            mode,
            links,
            uid,
            gid,
            size,
            used,
            device,
            fsid,
            fileid,
            atime,
            mtime,
            ctime,
            change,
        }
    }
}

/// A new value for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetTime {
    /// The server's clock, at the moment of the call.
    Now,
    /// This time.
    To(Time),
}

/// The attributes to change, with ids on side `S`; a field that is `None` stays unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SetAttr<S: IdDomain> {
    /// New permission bits.
    pub mode: Option<Mode>,
    /// New owner.
    pub uid: Option<Uid<S>>,
    /// New group.
    pub gid: Option<Gid<S>>,
    /// New length in bytes: cut, or extended by zeros.
    pub size: Option<u64>,
    /// New time of last access.
    pub atime: Option<SetTime>,
    /// New time of last change of data.
    pub mtime: Option<SetTime>,
}

impl<S: IdDomain> SetAttr<S> {
    /// Returns whether nothing is to be changed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Converts the ids. There is no other way to convert the changes to the other side.
    #[must_use]
    pub fn with_ids<T: IdDomain>(self, uid: Option<Uid<T>>, gid: Option<Gid<T>>) -> SetAttr<T> {
        let Self { mode, size, atime, mtime, .. } = self;
        SetAttr { mode, uid, gid, size, atime, mtime }
    }
}
