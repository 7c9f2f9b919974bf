use std::time::Duration;

use crate::{
    Attr, Changed, Create, Cred, DelegationNumber, DirectoryNotice, Disk, Handle, Name, Result,
};

/// The interface of a client's file system to the state that is held at the server: opens,
/// byte-range locks and delegations (RFC 8881, 8 to 10).
///
/// While a file is delegated, no other client opens it in a conflicting way: cached data and
/// attributes stay valid, and are used without asking the server. If the server recalls or revokes
/// the delegation, [`OpenFiles::poll_event`] returns an event; no verb calls back.
pub trait OpenFiles: Send + Sync {
    /// Opens a file that was looked up before, as `place` if that is given: another client may have
    /// renamed it meanwhile. Reads and writes of this caller then use the open, until it is closed;
    /// reads and writes of callers who have not opened the file work, too.
    ///
    /// # Errors
    /// [`crate::Status::Acces`]; [`crate::Status::Stale`] if the server says that `place` names
    /// another object or none; [`crate::Status`].
    fn open(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        place: Option<(&Handle, Name<'_>)>,
        access: OpenAccess,
    ) -> Result<OpenedFile>;

    /// Finds a name in a directory, or makes a file of that name as `create` says, and opens it, in
    /// one step. Returns the directory's change.
    ///
    /// # Errors
    /// Those of [`crate::Fs::lookup`] and [`crate::Fs::create`].
    fn open_name(
        &self,
        cred: &Cred<Disk>,
        place: (&Handle, Name<'_>),
        access: OpenAccess,
        create: Option<&Create<Disk>>,
    ) -> Result<Changed<OpenedFile, Disk>>;

    /// Closes a file after unlocking all locks that were taken through this open. Written data need
    /// not be stable: see [`crate::Fs::commit`].
    ///
    /// # Errors
    /// [`crate::Status::Io`] if the server had lost the open or its locks meanwhile.
    fn close(&self, open: OpenId) -> Result<()>;

    /// Returns whether a file that is open survives the removal of its last name. Otherwise the
    /// caller has to keep another name of the file until it is closed: the server deletes a file
    /// with its last name (RFC 8881, 18.25.4), or has no opens (NFSv3).
    fn keeps_removed(&self) -> bool {
        false
    }

    /// Returns the delegation of a file if it is certainly valid at this moment: not recalled, and
    /// within the lease. The server is not asked.
    fn delegation(&self, node: &Handle) -> Option<DelegationKind>;

    /// The number of the delegation of a file, as long as it certainly keeps other clients from
    /// changing the file: unlike [`OpenFiles::delegation`] also after a recall, until its return
    /// begins. The server is not asked.
    fn file_grant(&self, node: &Handle) -> Option<DelegationNumber>;

    /// Returns a delegation to the server, after the caller has written all dirty data. Does
    /// nothing if there is none.
    ///
    /// # Errors
    /// [`crate::Status`]; the delegation has ended even then.
    fn return_delegation(&self, node: &Handle) -> Result<()>;

    /// Returns the delegation of a directory if it is certainly valid at this moment: no other
    /// client changes names or attributes of the directory (RFC 8881, 10.9), or
    /// [`OpenFiles::poll_notice`] returns the changes. The server is not asked.
    fn directory_grant(&self, dir: &Handle) -> Option<DelegationNumber> {
        let _ = dir;
        None
    }

    /// Asks the server for a delegation of a directory, on behalf of the caller that used it last,
    /// and for its attributes. If a delegation is granted, the attributes were read after the
    /// grant.
    ///
    /// # Errors
    /// [`crate::Status`]. It is no error if the server does not delegate directories: no delegation
    /// is returned then.
    fn delegate_directory(&self, dir: &Handle) -> Result<(Attr<Disk>, Option<DelegationNumber>)> {
        let _ = dir;
        Err(crate::Status::NotSupp)
    }

    /// Returns the next change of a delegated directory of which the server has notified this
    /// client, in the order of the changes; `None` if all were taken. They must be taken before
    /// cached data of a delegated directory are used, because the server assumes that they are
    /// applied. The server is not asked.
    fn poll_notice(&self) -> Option<DirectoryNotice> {
        None
    }

    /// Sets the length in bytes of a file with a write delegation whose data are not all written to
    /// the server, or `None` when they are. The server may ask for it (CB_GETATTR).
    fn note_unwritten(&self, node: &Handle, size: Option<u64>);

    /// Locks or, with [`crate::RangeLock::Free`], unlocks bytes of an open file.
    ///
    /// # Errors
    /// [`crate::Status::NotSupp`] if the server has no locks, [`crate::Status::Interrupted`] while
    /// waiting, [`crate::Status::Io`] if locks of this open were lost; [`crate::Status`].
    fn lock(&self, wanted: &LockRequest) -> Result<LockOutcome>;

    /// Returns a lock that conflicts with the wanted one, if there is any.
    ///
    /// # Errors
    /// As [`OpenFiles::lock`].
    fn find_lock(&self, wanted: &LockRequest) -> Result<Option<HeldLock>>;

    /// Gives back all delegations, opens and locks, and takes leave of the server. Called once, as
    /// the last verb, after all dirty data were written. It takes 15 s at most; what the server
    /// does not take back in that time ends with the lease.
    fn leave(&self) {}

    /// Waits for the next event, at most for the time `patience`. Each event is returned once.
    fn poll_event(&self, patience: Duration) -> Option<OpenEvent>;
}

/// The use for which a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OpenAccess {
    /// Reading.
    Read,
    /// Writing.
    Write,
    /// Both.
    Both,
}

impl OpenAccess {
    /// Returns whether it includes reading.
    #[must_use]
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::Both)
    }

    /// Returns whether it includes writing.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Both)
    }
}

/// The number of an open, unique within its file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OpenId(pub u64);

/// A file that was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedFile {
    /// The open.
    pub open: OpenId,
    /// The file.
    pub handle: Handle,
    /// Its attributes at that moment; `None` if the server was not asked, because the file is
    /// delegated.
    pub attr: Option<Attr<Disk>>,
    /// The delegation of the file, if there is one.
    pub delegation: Option<DelegationKind>,
}

/// The right that a delegation gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DelegationKind {
    /// No other client changes the file.
    Read,
    /// No other client reads or changes the file.
    Write,
}

/// An owner of locks: its locks do not conflict with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LockOwner(pub u64);

/// A lock that is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockRequest {
    /// The open through which it is taken.
    pub open: OpenId,
    /// The owner of the lock.
    pub owner: LockOwner,
    /// The first and the last byte; [`u64::MAX`] as the last is the end of every file.
    pub bytes: (u64, u64),
    /// The kind of the lock.
    pub lock: crate::RangeLock,
    /// True if the caller waits while others hold a lock that conflicts.
    pub waits: bool,
}

/// The outcome of [`OpenFiles::lock`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOutcome {
    /// The lock was set or removed.
    Done,
    /// Another owner has a lock that conflicts, and the caller did not want to wait.
    Denied,
    /// The server knows that waiting would never end (a deadlock).
    Deadlock,
}

/// A lock of another owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLock {
    /// The first and the last byte, as in [`LockRequest::bytes`].
    pub bytes: (u64, u64),
    /// True if nobody else may read the bytes either.
    pub is_exclusive: bool,
}

/// A change of the state that is held at the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenEvent {
    /// The server has recalled the delegation of a file. Dirty data must be written, and then
    /// [`OpenFiles::return_delegation`] called, before the lease has expired.
    Recalled {
        /// The file.
        node: Handle,
        /// True if the file is about to be truncated to zero bytes, so that its data need not be
        /// written.
        is_truncated: bool,
    },
    /// A delegation was revoked, or was returned because a recall was not answered in time: other
    /// clients may have changed the file.
    DelegationLost {
        /// The file.
        node: Handle,
    },
    /// Opens or locks of a file were lost: calls that need them fail until it is closed.
    StateLost {
        /// The file.
        node: Handle,
    },
}
