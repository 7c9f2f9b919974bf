use std::any::Any;
use std::net::SocketAddr;
use std::time::Instant;

use crate::{
    Attr, CheckedPage, ComparedRange, DeviceId, Disk, Distribution, Handle, LabelledPage,
    LayoutKind, Rebuild, RebuiltPage, Result, Space, StoredPage,
};

/// The sizes in bytes below which clients should use the metadata server rather than data servers
/// (RFC 8881, 5.12.4); `None` where no such size is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Threshold {
    /// For reading: the size of the file.
    pub read_file_bytes: Option<u64>,
    /// For writing: the size of the file.
    pub write_file_bytes: Option<u64>,
    /// For reading: the number of bytes that the client reads.
    pub read_io_bytes: Option<u64>,
    /// For writing: the number of bytes that the client writes.
    pub write_io_bytes: Option<u64>,
}

/// A data server, and whether it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataServerState {
    /// The name by which files refer to it.
    pub name: Box<str>,
    /// The address that clients are given.
    pub address: SocketAddr,
    /// The path that it exports, if it is a stock server.
    pub path: Option<Box<str>>,
    /// True if it takes no new files, and its files are to be moved to the others.
    pub is_draining: bool,
    /// The state of the connection to it.
    pub link: LinkState,
    /// The files whose mirrors there are broken, as far as this is known since the start.
    pub broken_files: u64,
}

/// The state of the connection to a data server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkState {
    /// True if the data server answers.
    pub is_up: bool,
    /// The time since when that is so.
    pub since: Instant,
    /// The last error, while the data server does not answer.
    pub last_error: Option<Box<str>>,
    /// The space of the file system with its data files, when it last told that.
    pub space: Option<Space>,
}

/// The outcome of an attempt to move a file to other data servers, or to make its mirrors again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MovedFile {
    /// The file was moved, or has got the mirrors that it lacked.
    Moved {
        /// The bytes of the file, as they were copied; zero if nothing was.
        bytes: u64,
        /// True if data servers lacked a part of the file, because it was lost or never written.
        /// The new data files have zeros there.
        has_gaps: bool,
    },
    /// The file has no bytes on data servers that are being drained, and lacks no mirror.
    Stayed,
}

/// A file system with files on data servers that clients read and write directly (parallel NFS).
pub trait Placement: Send + Sync {
    /// Returns the placement for a downcast, by which the program that made it can change it.
    fn as_any(&self) -> &dyn Any;

    /// The kind of layouts that clients get.
    fn layout_kind(&self) -> LayoutKind;

    /// The length of the stripe units of new files in bytes.
    fn unit_bytes(&self) -> u32;

    /// The sizes below which clients should use the metadata server.
    fn threshold(&self) -> Threshold;

    /// The data servers of new files, in the order of the stripe units.
    fn servers(&self) -> Vec<DataServerState>;

    /// Returns the distribution of a file, with handles for reading, or for reading and writing;
    /// `None` if the file is not on data servers that clients may use.
    ///
    /// # Errors
    /// [`Status`](crate::Status): a data server does not answer, or the file is gone.
    fn distribution(&self, node: &Handle, writes: bool) -> Result<Option<Distribution>>;

    /// Returns whether all data servers of a distribution may still be used. After a layout is
    /// noted, this tells whether a mirror was found broken before.
    fn is_current(&self, node: &Handle, distribution: &Distribution) -> bool;

    /// Notes that a client with a layout has met an error at the mirror of a file on this device.
    /// The mirror is not used for the file any more, unless it is the last one. It does nothing if
    /// the file has no mirror there.
    ///
    /// # Errors
    /// [`Status`](crate::Status): this cannot be stored.
    fn note_mirror_error(&self, node: &Handle, device: &DeviceId) -> Result<()>;

    /// The same for an error of a read of a range (offset, length). As everyone who may read the
    /// file can report one, the mirror counts as broken only if this server finds a fault too.
    ///
    /// # Errors
    /// As [`Placement::note_mirror_error`].
    fn note_mirror_read_error(
        &self,
        node: &Handle,
        device: &DeviceId,
        range: (u64, u64),
    ) -> Result<()>;

    /// Returns a file of which a mirror was found broken. Layouts of it that clients have must be
    /// recalled, as they name the mirror. Until [`Placement::layouts_recalled`] reports that, no
    /// layout of the file is given out, and changes are answered with
    /// [`Status::Delay`](crate::Status::Delay).
    fn poll_broken_mirror(&self) -> Option<Handle>;

    /// Reports whether no client has an earlier layout of a file any more. If one has,
    /// [`Placement::poll_broken_mirror`] returns the file again.
    fn layouts_recalled(&self, node: &Handle, done: bool);

    /// Makes the data servers refuse all handles of a file that [`Placement::distribution`] has
    /// returned so far. Returns when no call by them is under way. It does nothing for a file that
    /// is not on data servers.
    ///
    /// # Errors
    /// [`Status`](crate::Status): a data server does not answer. Data servers that did answer
    /// refuse the handles.
    fn fence(&self, node: &Handle) -> Result<()>;

    /// The addresses of the data servers of a device, in the order of the handles.
    fn device(&self, device: &DeviceId) -> Option<Vec<SocketAddr>>;

    /// Notes that a client has written to data servers up to `end`, the offset after the last byte;
    /// `None` if the size is unchanged. The size never shrinks, and the time of the change is now.
    /// Returns the attributes afterwards.
    ///
    /// # Errors
    /// [`Status`](crate::Status).
    fn note_written(&self, node: &Handle, end: Option<u64>) -> Result<Attr<Disk>>;

    /// Asks the data servers how far clients have written to a file, as they may not have said so
    /// by LAYOUTCOMMIT (RFC 8881, 12.5.4), and extends the file to there. If a client has written
    /// since the last change of the file, the time of the change is now. The size never shrinks. It
    /// does nothing for a file that is not on data servers.
    ///
    /// # Errors
    /// [`Status::Delay`](crate::Status::Delay): a data server does not answer, or the file is moved
    /// or truncated at this moment; [`Status`](crate::Status).
    fn learn_size(&self, node: &Handle) -> Result<()>;

    /// Compares the placed files of a page of a directory with their data files, and changes
    /// nothing. A page begins after the cookie `after` (0: at the start).
    ///
    /// # Errors
    /// [`Status`](crate::Status): the directory cannot be read.
    fn check(&self, directory: &Handle, after: u64) -> Result<CheckedPage>;

    /// Compares the bytes of a range (offset, length) of the good mirrors of a file with each
    /// other, as far as that takes about a second, and changes nothing. Clients that write by
    /// layouts can make mirrors differ for a moment. Returns `None` for a file that has no two
    /// good mirrors.
    ///
    /// # Errors
    /// [`Status::Delay`](crate::Status::Delay): the file is being moved;
    /// [`Status`](crate::Status): it is gone.
    fn compare(&self, node: &Handle, range: (u64, u64)) -> Result<Option<ComparedRange>>;

    /// Moves the bytes of a file from data servers that are being drained to those of new files,
    /// and makes the mirrors that it lacks: those that are broken, and those that the placement
    /// asks for now. Good mirrors stay where they are. Changes of the file are refused with
    /// [`Status::Delay`](crate::Status::Delay) meanwhile, and no layout is given out. `clear` is
    /// called then: it returns an error while clients still have layouts of the file. `copied` is
    /// told the bytes copied so far.
    ///
    /// # Errors
    /// The error of `clear`; [`Status::Delay`](crate::Status::Delay): the file is in use or a data
    /// server does not answer; [`Status`](crate::Status). The file is whole and readable after each
    /// of them; a copy of it may be left on data servers as orphaned data files.
    fn move_file(
        &self,
        node: &Handle,
        clear: &dyn Fn() -> Result<()>,
        copied: &dyn Fn(u64),
    ) -> Result<MovedFile>;

    /// Notes that no file names the data server of this name any more. It may then be taken out.
    ///
    /// # Errors
    /// [`Status::NoEnt`](crate::Status::NoEnt): the placement does not drain such a data server, or
    /// files are being moved.
    fn note_drained(&self, server: &str) -> Result<()>;

    /// Writes labels, which say which file a data file belongs to, to the data files of files that
    /// have changed. The server calls this about once a second. It does what it can: labels on a
    /// data server that does not answer stay due.
    fn write_labels(&self);

    /// Writes the labels of a page of a directory, if they are missing or old. A page begins after
    /// the cookie `after` (0: at the start).
    ///
    /// # Errors
    /// [`Status`](crate::Status): the directory cannot be read.
    fn label(&self, directory: &Handle, after: u64) -> Result<LabelledPage>;

    /// Gives files whose data files are on a page of a data server their places back, as labels
    /// tell them, and creates files that are gone. A file with a place, or with bytes of its own,
    /// stays as it is. A page begins after the cookie `after` (0: at the start).
    ///
    /// # Errors
    /// [`Status::NoEnt`](crate::Status::NoEnt): the placement has no such data server;
    /// [`Status`](crate::Status): it does not answer.
    fn rebuild(&self, server: &str, after: u64, how: Rebuild<'_>) -> Result<RebuiltPage>;

    /// Returns a page of the names of all data files on the data server of this name.
    ///
    /// # Errors
    /// [`Status::NoEnt`](crate::Status::NoEnt): the placement has no such data server;
    /// [`Status`](crate::Status): it does not answer.
    fn stored(&self, server: &str, after: u64) -> Result<StoredPage>;
}
