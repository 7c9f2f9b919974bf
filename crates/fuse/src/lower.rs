//! Things that the layer below can say and do beside the verbs of an [`Fs`](comity_vfs::Fs).

use std::time::Duration;

use comity_vfs::{Access, Attr, Cred, Disk, Handle, Result};

/// The time for which the kernel may keep an answer without asking again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// A name and the object it stands for, or that there is no such name.
    pub entry: Duration,
    /// The attributes of an object.
    pub attr: Duration,
}

impl Keep {
    /// Not at all.
    pub const NOTHING: Self = Self { entry: Duration::ZERO, attr: Duration::ZERO };

    /// The same time for both.
    #[must_use]
    pub const fn both(time: Duration) -> Self {
        Self { entry: time, attr: time }
    }
}

/// Something that the kernel must not keep any longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invalid {
    /// The attributes of an object.
    Attributes(Handle),
    /// The attributes and the data of an object.
    Data(Handle),
    /// A name in a directory.
    Name(Handle, Box<[u8]>),
}

/// The purpose that a file is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opening {
    /// The rights that the caller asked for and has.
    pub rights: Access,
}

/// The kind of a byte-range lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockKind {
    /// Others may hold it, too.
    Shared,
    /// Nobody else may hold it.
    Exclusive,
}

/// A request for a lock, by fcntl(2) or flock(2). The kernel does not say which: as with NFS, locks
/// of both kinds meet each other, and flock(2) locks all bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockRequest {
    /// The owner: locks of one owner do not conflict.
    pub owner: u64,
    /// The first byte and the last one.
    pub bytes: (u64, u64),
    /// `None` unlocks.
    pub kind: Option<LockKind>,
    /// The process, for those who ask for the holder.
    pub pid: u32,
}

/// Byte-range locks that others must heed, too. No call waits.
pub trait LowerLocks: Send + Sync {
    /// LowerLocks or unlocks. Returns whether it could; then and only then something has changed.
    ///
    /// # Errors
    /// [`comity_vfs::Status`].
    fn lock(&self, cred: &Cred<Disk>, node: &Handle, request: &LockRequest) -> Result<bool>;

    /// A lock that stands against the request, if there is one.
    ///
    /// # Errors
    /// [`comity_vfs::Status`].
    fn conflict(&self, node: &Handle, request: &LockRequest) -> Result<Option<LockRequest>>;
}

/// The layer below, in what an [`Fs`](comity_vfs::Fs) does not say. All of it has a default, with
/// which any `Fs` can be mounted.
pub trait Lower: Send + Sync {
    /// The time for which the kernel may keep the attributes of an object and its name.
    fn keep(&self, node: &Handle, attr: &Attr<Disk>) -> Keep;

    /// The time for which the kernel may keep that a name is not in a directory.
    fn keep_missing(&self, dir: &Handle) -> Duration;

    /// Returns whether an object that has lost its last name stays usable while it is open. If not,
    /// an open file keeps a hidden name until it is closed.
    fn keeps_removed(&self) -> bool {
        false
    }

    /// A file is being opened by a caller with these rights.
    ///
    /// # Errors
    /// [`comity_vfs::Status`]: it is not opened.
    fn open(&self, cred: &Cred<Disk>, node: &Handle, opening: Opening) -> Result<()> {
        let _ = (cred, node, opening);
        Ok(())
    }

    /// A file that was opened is not used any longer.
    fn release(&self, cred: &Cred<Disk>, node: &Handle, opening: Opening) {
        let _ = (cred, node, opening);
    }

    /// A program closes a descriptor of the file: close-to-open wants others to see from then on
    /// what it has written.
    ///
    /// # Errors
    /// [`comity_vfs::Status`]: what close(2) returns.
    fn flush(&self, cred: &Cred<Disk>, node: &Handle) -> Result<()> {
        let _ = (cred, node);
        Ok(())
    }

    /// LowerLocks that reach further than this machine. Without them the kernel keeps its own.
    fn locks(&self) -> Option<&dyn LowerLocks> {
        None
    }

    /// The next thing that the kernel must forget. One thread calls this again and again, and
    /// answers no requests. The kernel has forgotten the thing once it is called again.
    fn poll_invalid(&self) -> Option<Invalid> {
        None
    }
}

/// A layer below that knows no more than fixed times.
#[derive(Debug, Clone, Copy)]
pub struct Plain {
    /// For everything that is there.
    pub keep: Keep,
    /// For names that are not there.
    pub missing: Duration,
}

impl Lower for Plain {
    fn keep(&self, _node: &Handle, _attr: &Attr<Disk>) -> Keep {
        self.keep
    }

    fn keep_missing(&self, _dir: &Handle) -> Duration {
        self.missing
    }
}
