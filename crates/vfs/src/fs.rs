use std::ops::ControlFlow;

use crate::{
    Access, Acl, AclKind, Attr, Change, Changed, Create, Cred, Device, Disk, Gid, Handle, IdDomain,
    LocalLocks, Name, Node, OpenFiles, Placement, Read, ReadInto, Result, SetAttr, Status, Time,
    Uid,
};

/// A file system: the only interface to one in the house.
///
/// Every verb is synchronous and waits for no other client. Verbs that a caller's rights decide
/// take its [`Cred`]; the file system's own verdict counts. The others ([`Fs::getattr`],
/// [`Fs::commit`], [`Fs::statfs`]) need only a handle that was let in.
///
/// Verbs that are optional say [`Status::NotSupp`] by default.
pub trait Fs: Send + Sync {
    /// The top directory.
    fn root(&self) -> Handle;

    /// The number of the volume that holds an object: the same in every [`Fs`] of this machine that
    /// shows the volume, and as lasting as handles are. An object has the same handle in all of
    /// them. It makes no system call.
    fn volume(&self, node: &Handle) -> u64;

    /// The properties of this file system.
    ///
    /// # Errors
    /// [`Status`]; [`Status::Stale`] if it has vanished. So for every verb below.
    fn properties(&self, node: &Handle) -> Result<Properties>;

    /// Space and inodes, total and free, as `cred` may use them.
    ///
    /// # Errors
    /// [`Status`].
    fn statfs(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Space>;

    /// The object's attributes.
    ///
    /// # Errors
    /// [`Status`].
    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>>;

    /// Changes attributes, all or none as far as the file system can; with `guard`, only if the
    /// object's ctime is that (RFC 1813, 3.3.2).
    ///
    /// # Errors
    /// [`Status::NotSync`] if the guard does not match; [`Status`].
    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>>;

    /// The caller's rights among `wanted`, and the object's attributes.
    ///
    /// # Errors
    /// [`Status`]; a right that is missing is no error.
    fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)>;

    /// Returns whether the caller counts as the owner of an object or as the superuser.
    ///
    /// # Errors
    /// [`Status`].
    fn owns(&self, cred: &Cred<Disk>, node: &Handle) -> Result<bool> {
        Ok(cred.uid.number() == 0 || self.getattr(node)?.uid == cred.uid)
    }

    /// Finds a name in a directory.
    ///
    /// # Errors
    /// [`Status::NoEnt`], [`Status::NotDir`], [`Status::Acces`]; [`Status`].
    fn lookup(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>>;

    /// The directory that holds `dir`; the root's is the root itself.
    ///
    /// # Errors
    /// [`Status::NotDir`]; [`Status`].
    fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>>;

    /// Directories that hold an object that is no directory, as far as the file system can tell:
    /// the object has a name now in each of them, but there may be others. It serves to find out
    /// what an object lies below, as the server.
    ///
    /// # Errors
    /// [`Status`].
    fn directories_of(&self, node: &Handle) -> Result<Vec<Handle>> {
        let _ = node;
        Ok(Vec::new())
    }

    /// Target and attributes of a symbolic link, whose atime stays as it is.
    ///
    /// # Errors
    /// [`Status::Inval`] if it is no link; [`Status`].
    fn readlink(&self, cred: &Cred<Disk>, node: &Handle) -> Result<(Target, Attr<Disk>)>;

    /// Reads up to `count` bytes at `offset` into `into`.
    ///
    /// The owner of a file may always read it, whatever its mode: a client has checked when it
    /// opened the file, and may have opened it before the mode changed. A caller known to have
    /// opened it for reading may read it, too. A caller that may execute a file may read it, so
    /// that clients can run it.
    ///
    /// # Errors
    /// [`Status::IsDir`], [`Status::Inval`] if it is no regular file; [`Status`].
    fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>>;

    /// Writes `data` at `offset`; it need not be on stable storage before [`Fs::commit`]. A full
    /// disk may take less than all: what was written counts. The owner may always write.
    ///
    /// # Errors
    /// [`Status::NoSpc`], [`Status::DQuot`], [`Status::FBig`], [`Status::RoFs`]; [`Status`].
    fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>>;

    /// The same for a caller who was let in when it opened the file for writing, and so is not
    /// judged again; how many bytes.
    ///
    /// # Errors
    /// As [`Fs::write`].
    fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        self.write(cred, node, offset, data).map(|written| written.value)
    }

    /// Puts on stable storage all that was written to `node` (data, length) or done in it (entries
    /// of a directory) through this file system before the call. Calls that wait together share one
    /// barrier. After a failed barrier later ones on the same object fail too, for want of space
    /// until those concerned have heard of it: what it should have held may be lost.
    ///
    /// Gives no attributes if the object has lost its last name meanwhile; that too, and what was
    /// done before, is stable then.
    ///
    /// # Errors
    /// [`Status::Io`] and the like if the medium failed, [`Status::Stale`] if its file system is
    /// not there: nothing may be promised then.
    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>>;

    /// Makes a regular file, or finds it where `how` allows.
    ///
    /// # Errors
    /// [`Status::Exist`] as [`Create`] says; [`Status`].
    fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>>;

    /// Makes a directory.
    ///
    /// # Errors
    /// [`Status::Exist`]; [`Status`].
    fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>>;

    /// Makes a symbolic link to `target`, 1 to 4,095 bytes without a zero.
    ///
    /// # Errors
    /// [`Status::Exist`]; [`Status`].
    fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>>;

    /// Makes a device, named pipe or socket.
    ///
    /// # Errors
    /// [`Status::Exist`], [`Status::Perm`] where devices need privilege, [`Status::Inval`] for
    /// numbers that no device has; [`Status`].
    fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>>;

    /// Removes a name that is no directory's.
    ///
    /// # Errors
    /// [`Status::IsDir`]; [`Status`].
    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`Status::NotEmpty`], [`Status::NotDir`]; [`Status`].
    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>>;

    /// Gives an object another name, replacing what may be replaced; tells both directories'
    /// changes, the source's first.
    ///
    /// # Errors
    /// [`Status::Exist`] or [`Status::NotEmpty`] if the target cannot be replaced; [`Status`].
    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)>;

    /// Gives an object one name more; tells its attributes and the directory's change.
    ///
    /// # Errors
    /// [`Status::Exist`], [`Status::MLink`]; [`Status`].
    fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>>;

    /// Shows the entries of a directory behind `cookie` (0: from the start) to `visit`, `.` and
    /// `..` not among them, until it breaks off or none is left. A cookie stays good while the
    /// directory changes: entries that were there all the time are shown exactly once.
    ///
    /// # Errors
    /// [`Status::NotDir`], [`Status::BadCookie`], [`Status::Acces`]; [`Status`].
    fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<Attr<Disk>>;

    /// An object's ACL; `None` if its mode says it all.
    ///
    /// # Errors
    /// [`Status::NotSupp`] where there are none; [`Status`].
    fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        let _ = (node, kind);
        Err(Status::NotSupp)
    }

    /// Sets or (with `None`) removes an ACL; the mode follows it.
    ///
    /// # Errors
    /// [`Status::NotSupp`] where there are none; [`Status::Inval`] for one that is none;
    /// [`Status`].
    fn setacl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        let _ = (cred, node, kind, acl);
        Err(Status::NotSupp)
    }

    /// The value of the user's extended attribute `name` (without the `user.` in front; RFC 8276).
    /// Only files and directories bear any (xattr(7)).
    ///
    /// # Errors
    /// [`Status::NoXattr`]; [`Status`].
    fn getxattr(&self, cred: &Cred<Disk>, node: &Handle, name: Name<'_>) -> Result<Vec<u8>> {
        let _ = (cred, node, name);
        Err(Status::NotSupp)
    }

    /// Sets an extended attribute, or removes it if `value` is `None`.
    ///
    /// # Errors
    /// [`Status::NoXattr`], [`Status::Exist`] as `mode` says; [`Status::XattrTooBig`];
    /// [`Status::Perm`] of what is neither file nor directory; [`Status`].
    fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        let _ = (cred, node, name, value, mode);
        Err(Status::NotSupp)
    }

    /// The names of all extended attributes of the user kind, without the `user.` in front.
    ///
    /// # Errors
    /// [`Status`].
    fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        let _ = (cred, node);
        Err(Status::NotSupp)
    }

    /// The next data or hole at or behind `offset`.
    ///
    /// # Errors
    /// [`Status::NoData`] if there is none before the end; [`Status`].
    fn seek(&self, cred: &Cred<Disk>, node: &Handle, offset: u64, what: Seek) -> Result<u64> {
        let _ = (cred, node, offset, what);
        Err(Status::NotSupp)
    }

    /// Reserves space, so that writes to the range find it; extends the file if need be.
    ///
    /// # Errors
    /// [`Status::NoSpc`]; [`Status`].
    fn allocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        let _ = (cred, node, offset, length);
        Err(Status::NotSupp)
    }

    /// Makes the range a hole that reads as zeros; the length stays.
    ///
    /// # Errors
    /// [`Status`].
    fn deallocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        let _ = (cred, node, offset, length);
        Err(Status::NotSupp)
    }

    /// Returns the side that is turned to other programs of this machine, which lock and open the
    /// same files; `None` where there are no such programs.
    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        None
    }

    /// Returns the side on which state is held at a server; `None` where there is no server.
    fn open_files(&self) -> Option<&dyn OpenFiles> {
        None
    }

    /// The distribution of its files over data servers; none if it has all bytes itself.
    fn placement(&self) -> Option<&dyn Placement> {
        None
    }

    /// Lets go of files that have lost their last name, so that their space is free. To be called
    /// about once a second: a program that removes a file tells nobody. It may take long, for the
    /// blocks of a huge file are freed by whoever closes it last.
    fn release_removed(&self) {}

    /// Copies up to `length` bytes within the file system, sharing blocks where it can; tells how
    /// many and the target's change.
    ///
    /// # Errors
    /// [`Status::XDev`]; [`Status`].
    fn copy(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        let _ = (cred, source, target, length);
        Err(Status::NotSupp)
    }

    /// Makes `length` bytes of the target those of the source, all or none, by sharing blocks.
    ///
    /// # Errors
    /// [`Status::Inval`] if the source ends before, the ranges overlap, or they do not begin and
    /// end where blocks do ([`Properties::clone_bytes`]; the source's end will do where the target
    /// ends, too); [`Status::XDev`]; [`Status`].
    fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        let _ = (cred, source, target, length);
        Err(Status::NotSupp)
    }
}

/// The properties of a file system, constant while it is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Properties {
    /// Largest file size in bytes.
    pub file_size_max: u64,
    /// Longest name in bytes.
    pub name_bytes_max: u32,
    /// Most hard links to one object.
    pub links_max: u32,
    /// The grain of its times.
    pub time_delta: Time,
    /// True if it has hard links.
    pub hard_links: bool,
    /// True if it has symbolic links.
    pub symbolic_links: bool,
    /// True if a change of owner needs privilege (`_POSIX_CHOWN_RESTRICTED`).
    pub chown_restricted: bool,
    /// True if `A` and `a` are one name.
    pub case_insensitive: bool,
    /// True if `A` is still `A` when listed.
    pub case_preserving: bool,
    /// The grain in bytes at which [`Fs::clone_range`] shares blocks, a power of two.
    pub clone_bytes: u32,
    /// The owner of everything that is made in it: the server's own user and group, where it cannot
    /// act as its callers.
    pub maker: Option<(Uid<Disk>, Gid<Disk>)>,
}

/// Space and inodes of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// Its size in bytes.
    pub bytes_total: u64,
    /// Free bytes.
    pub bytes_free: u64,
    /// Free bytes the caller may use.
    pub bytes_available: u64,
    /// Objects it can hold.
    pub files_total: u64,
    /// Objects it can still hold.
    pub files_free: u64,
    /// Objects it can still hold for the caller.
    pub files_available: u64,
}

/// A name's object, and the directory it was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<S: IdDomain> {
    /// The object.
    pub node: Node<S>,
    /// The directory's attributes, if they could be read.
    pub dir: Option<Attr<S>>,
}

/// A new object, and what making it did to its directory.
pub type Made<S> = Changed<Node<S>, S>;

/// The target of a symbolic link: bytes, not text.
pub type Target = Box<[u8]>;

/// The bytes that were written, and the change of the file.
pub type Written<S> = Changed<u32, S>;

/// An object that is neither file, directory nor link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A block device.
    Block(Device),
    /// A character device.
    Character(Device),
    /// A named pipe.
    Fifo,
    /// A UNIX socket.
    Socket,
}

/// The stability of data that a write must reach before it is answered (RFC 1813, 3.3.7).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// A crash may lose the data until they are committed.
    Unstable,
    /// The data, and what is needed to find it again, are on stable storage.
    DataSync,
    /// Data and all attributes are on stable storage.
    FileSync,
}

/// The part of each entry that a listing wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Names, numbers and cookies.
    Names,
    /// Handles and attributes too.
    Nodes,
}

/// One entry of a directory as it is shown.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a, S: IdDomain> {
    /// Its name.
    pub name: Name<'a>,
    /// The object's number.
    pub fileid: u64,
    /// The cookie behind this entry.
    pub cookie: u64,
    /// The object, with [`Listed::Nodes`], if it was to be had.
    pub node: Option<Node<S>>,
}

/// The target of [`Fs::seek`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// Data.
    Data,
    /// A hole; there is one at the end of every file.
    Hole,
}

/// The condition on an existing extended attribute (RFC 8276, 8.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XattrMode {
    /// Either.
    Either,
    /// The attribute must not exist.
    Create,
    /// The attribute must exist.
    Replace,
}
