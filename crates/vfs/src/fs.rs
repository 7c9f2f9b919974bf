use std::ops::ControlFlow;

use crate::{
    Access, Acl, AclKind, Attr, Change, Changed, Create, Cred, Device, Disk, Gid, Handle, IdDomain,
    LocalLocks, Name, Node, OpenFiles, Placement, Read, ReadInto, Result, SetAttr, Space, Status,
    Time, Uid,
};

/// A file system: the only interface to file systems in this project.
///
/// Every verb is synchronous and waits for no other client. A verb that depends on the caller's
/// rights takes its [`Cred`], and the file system itself decides. The others ([`Fs::getattr`],
/// [`Fs::commit`], [`Fs::statfs`]) need only a handle that was admitted.
///
/// Optional verbs return [`Status::NotSupp`] by default.
pub trait Fs: Send + Sync {
    /// The root directory.
    fn root(&self) -> Handle;

    /// The number of the volume that holds an object: the same in every [`Fs`] of this machine that
    /// shows the volume, and as lasting as handles are. An object has the same handle in all of
    /// them. It makes no system call.
    fn volume(&self, node: &Handle) -> u64;

    /// The properties of this file system.
    ///
    /// # Errors
    /// [`Status`]; [`Status::Stale`] if the file system has vanished. That is so for every verb
    /// below.
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

    /// Changes attributes: all or none, as far as the file system can. With `guard`, they are
    /// changed only if the object's ctime equals the guard (RFC 1813, 3.3.2).
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

    /// Returns directories that have a name of an object now, as far as the file system can find
    /// them; there may be others. The object is no directory. The server uses this to find the
    /// directories above the object.
    ///
    /// # Errors
    /// [`Status`].
    fn directories_of(&self, node: &Handle) -> Result<Vec<Handle>> {
        let _ = node;
        Ok(Vec::new())
    }

    /// Returns the target and the attributes of a symbolic link. The atime does not change.
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

    /// Writes `data` at `offset`; it need not be on stable storage before [`Fs::commit`]. If the
    /// disk is full, less than all may be written. The owner may always write.
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

    /// Writes as [`Fs::write`] does, for a caller whose rights were checked when it opened the file
    /// for writing and are not checked again. Returns the number of bytes written.
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

    /// Writes as [`Fs::write`] does, if possible so that all data of the file is on stable storage
    /// afterwards. Returns whether it is; if not, [`Fs::commit`] must follow.
    ///
    /// # Errors
    /// As [`Fs::write`].
    fn write_stable(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<(Written<Disk>, Stability)> {
        Ok((self.write(cred, node, offset, data)?, Stability::Unstable))
    }

    /// Puts on stable storage all that was written to `node` (data, length) or done in it (entries
    /// of a directory) through this file system before the call. Concurrent calls share one
    /// barrier. After a failed barrier, later ones on the same object fail too, because data may be
    /// lost; after a lack of space they do so for a limited time.
    ///
    /// Returns no attributes if the object has lost its last name meanwhile; the removal and all
    /// earlier changes are stable then.
    ///
    /// # Errors
    /// [`Status::Io`] and similar if the medium failed, [`Status::Stale`] if its file system is
    /// gone: stability must not be promised then.
    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>>;

    /// Makes a regular file, or finds an existing one if `how` allows it.
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

    /// Removes a name of an object that is not a directory.
    ///
    /// # Errors
    /// [`Status::IsDir`]; [`Status`].
    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>>;

    /// Removes an empty directory.
    ///
    /// # Errors
    /// [`Status::NotEmpty`], [`Status::NotDir`]; [`Status`].
    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>>;

    /// Gives an object another name, and replaces an object that has this name if that is allowed.
    /// Returns the changes of both directories, the source's first.
    ///
    /// # Errors
    /// [`Status::Exist`] or [`Status::NotEmpty`] if the target cannot be replaced; [`Status`].
    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)>;

    /// Gives an object an additional name; returns its attributes and the directory's change.
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

    /// Passes the entries of a directory after `cookie` (0: from the start) to `visit`, without `.`
    /// and `..`, until `visit` stops or there are no more. A cookie stays valid while the directory
    /// changes: entries that exist all the time are shown exactly once.
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

    /// Returns an object's ACL; `None` if the mode is equivalent to it.
    ///
    /// # Errors
    /// [`Status::NotSupp`] if the file system has no ACLs; [`Status`].
    fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        let _ = (node, kind);
        Err(Status::NotSupp)
    }

    /// Sets or (with `None`) removes an ACL; the mode follows it.
    ///
    /// # Errors
    /// [`Status::NotSupp`] if the file system has no ACLs; [`Status::Inval`] if the ACL is
    /// malformed; [`Status`].
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
    /// Only files and directories have such attributes (xattr(7)).
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
    /// [`Status::Perm`] if the object is neither a file nor a directory; [`Status`].
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

    /// Returns the offset of the next data or hole at or after `offset`.
    ///
    /// # Errors
    /// [`Status::NoData`] if there is none before the end of the file; [`Status`].
    fn seek(&self, cred: &Cred<Disk>, node: &Handle, offset: u64, what: Seek) -> Result<u64> {
        let _ = (cred, node, offset, what);
        Err(Status::NotSupp)
    }

    /// Reserves space, so that later writes to the range do not run out of it; extends the file if
    /// needed.
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

    /// Turns the range into a hole that reads as zeros; the length of the file does not change.
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

    /// Returns the interface to other programs of this machine, which lock and open the same files;
    /// `None` if there are no such programs.
    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        None
    }

    /// Returns the interface to the state held at a server; `None` if there is no server.
    fn open_files(&self) -> Option<&dyn OpenFiles> {
        None
    }

    /// Returns the distribution of files over data servers; `None` if the file system has all bytes
    /// itself.
    fn placement(&self) -> Option<&dyn Placement> {
        None
    }

    /// Closes files that have lost their last name, so that their space is freed. The server calls
    /// this about once a second, because a program that removes a file does not notify it. It may
    /// take long: the last close of a huge file frees its blocks.
    fn release_removed(&self) {}

    /// Copies up to `length` bytes within the file system, sharing blocks where it can; returns the
    /// number of bytes copied and the target's change.
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
    /// [`Status::Inval`] if the source is too short, the ranges overlap, or they do not begin and
    /// end on block boundaries ([`Properties::clone_bytes`]; the end of the source is allowed if it
    /// becomes the end of the target); [`Status::XDev`]; [`Status`].
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
    /// The resolution of its times.
    pub time_delta: Time,
    /// True if it has hard links.
    pub hard_links: bool,
    /// True if it has symbolic links.
    pub symbolic_links: bool,
    /// True if a change of owner needs privilege (`_POSIX_CHOWN_RESTRICTED`).
    pub chown_restricted: bool,
    /// True if `A` and `a` are the same name.
    pub case_insensitive: bool,
    /// True if a listing keeps the case of names.
    pub case_preserving: bool,
    /// The grain in bytes at which [`Fs::clone_range`] shares blocks, a power of two.
    pub clone_bytes: u32,
    /// The owner of every new object: the server's own user and group, if the server cannot act as
    /// its callers. Otherwise `None`.
    pub maker: Option<(Uid<Disk>, Gid<Disk>)>,
}

/// The object of a name, and the directory in which it was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<S: IdDomain> {
    /// The object.
    pub node: Node<S>,
    /// The directory's attributes, if they could be read.
    pub dir: Option<Attr<S>>,
}

/// A new object, and the change of its directory.
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

/// One entry of a directory listing.
#[derive(Debug, Clone, Copy)]
pub struct Listing<'a, S: IdDomain> {
    /// Its name.
    pub name: Name<'a>,
    /// The object's number.
    pub fileid: u64,
    /// The cookie after this entry.
    pub cookie: u64,
    /// The object, with [`Listed::Nodes`], if it could be read.
    pub node: Option<Node<S>>,
}

/// The target of [`Fs::seek`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// The next data.
    Data,
    /// The next hole; there is one at the end of every file.
    Hole,
}

/// The condition on an existing extended attribute (RFC 8276, 8.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XattrMode {
    /// The attribute may exist or not.
    Either,
    /// The attribute must not exist.
    Create,
    /// The attribute must exist.
    Replace,
}
