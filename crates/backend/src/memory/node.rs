use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use comity_vfs::permission::Object;
use comity_vfs::{
    Acl, Attr, Device, Disk, FileType, Gid, Handle, Mode, Result, Status, Target, Time, Uid,
};

use super::content::Content;
use super::directory::Directory;
use super::space::Charge;

/// One object: the fields that never change, and the others behind its lock.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) fileid: u64,
    pub(super) handle: Handle,
    state: RwLock<State>,
}

impl Node {
    pub(super) fn new(fileid: u64, handle: Handle, state: State) -> Self {
        Self { fileid, handle, state: RwLock::new(state) }
    }

    /// Takes the lock even if it is poisoned: no code panics in the middle of a change of the
    /// state.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of an object that may change.
#[derive(Debug)]
pub(super) struct State {
    pub(super) meta: Meta,
    /// The access ACL, unless the mode is equivalent to it.
    pub(super) acl: Option<Acl<Disk>>,
    pub(super) default_acl: Option<Acl<Disk>>,
    pub(super) xattrs: BTreeMap<Box<[u8]>, Vec<u8>>,
    pub(super) body: Body,
    pub(super) charge: Charge,
}

/// Attributes that are stored, not computed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Meta {
    pub(super) fsid: u64,
    pub(super) fileid: u64,
    pub(super) mode: Mode,
    /// The links of an object other than a directory; those of a directory are computed, but 0 here
    /// means that it was removed.
    pub(super) links: u32,
    pub(super) uid: Uid<Disk>,
    pub(super) gid: Gid<Disk>,
    pub(super) atime: Time,
    pub(super) mtime: Time,
    pub(super) ctime: Time,
}

/// The type of an object, and its content.
#[derive(Debug)]
pub(super) enum Body {
    Regular {
        content: Content,
        /// The verifier of the exclusive CREATE that made the file, until its maker uses the file:
        /// after that no retry can arrive.
        verifier: Option<[u8; 8]>,
    },
    Directory(Directory),
    Symlink(Target),
    Special(FileType, Device),
}

impl State {
    pub(super) fn attr(&self) -> Attr<Disk> {
        let Meta { fsid, fileid, mode, uid, gid, atime, mtime, ctime, .. } = self.meta;
        let (size, used) = self.extent();
        let device = match self.body {
            Body::Special(_, device) => device,
            _ => Device::default(),
        };
        Attr {
            file_type: self.file_type(),
            mode,
            links: self.links(),
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
            change: ctime.change(),
        }
    }

    pub(super) fn file_type(&self) -> FileType {
        match self.body {
            Body::Regular { .. } => FileType::Regular,
            Body::Directory(_) => FileType::Directory,
            Body::Symlink(_) => FileType::Symlink,
            Body::Special(file_type, _) => file_type,
        }
    }

    pub(super) fn is_directory(&self) -> bool {
        matches!(self.body, Body::Directory(_))
    }

    /// Returns whether its last name was removed. An object that has no name yet is not removed.
    pub(super) fn is_removed(&self) -> bool {
        self.meta.links == 0
    }

    /// Returns the object in the form that the permission checks take.
    pub(super) fn object<'a>(&'a self, attr: &'a Attr<Disk>) -> Object<'a, Disk> {
        Object { attr, acl: self.acl.as_ref() }
    }

    pub(super) fn directory(&self) -> Result<&Directory> {
        match &self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Status::NotDir),
        }
    }

    pub(super) fn directory_mut(&mut self) -> Result<(&mut Directory, &mut Charge)> {
        match &mut self.body {
            Body::Directory(directory) => Ok((directory, &mut self.charge)),
            _ => Err(Status::NotDir),
        }
    }

    pub(super) fn content(&self) -> Result<&Content> {
        match &self.body {
            Body::Regular { content, .. } => Ok(content),
            Body::Directory(_) => Err(Status::IsDir),
            _ => Err(Status::Inval),
        }
    }

    pub(super) fn content_mut(&mut self) -> Result<(&mut Content, &mut Charge)> {
        match &mut self.body {
            Body::Regular { content, .. } => Ok((content, &mut self.charge)),
            Body::Directory(_) => Err(Status::IsDir),
            _ => Err(Status::Inval),
        }
    }

    /// Notes a change of attributes at `now`. Every change gets a distinct ctime, however coarse
    /// the clock is, because clients and guards distinguish states by it.
    pub(super) fn touch(&mut self, now: Time) {
        self.meta.ctime = now.max(next(self.meta.ctime));
    }

    /// Forgets the verifier of an exclusive CREATE, because its maker has received the reply.
    pub(super) fn forget_verifier(&mut self) {
        if let Body::Regular { verifier, .. } = &mut self.body {
            *verifier = None;
        }
    }

    /// Notes a change of data or entries at `now`.
    pub(super) fn touch_data(&mut self, now: Time) {
        self.touch(now);
        self.meta.mtime = self.meta.ctime;
        self.forget_verifier();
    }

    fn links(&self) -> u32 {
        match &self.body {
            Body::Directory(directory) if self.meta.links > 0 => 2 + directory.subdirectories,
            _ => self.meta.links,
        }
    }

    fn extent(&self) -> (u64, u64) {
        match &self.body {
            Body::Regular { content, .. } => (content.size(), content.used()),
            Body::Directory(_) => (self.charge.bytes(), self.charge.bytes()),
            Body::Symlink(target) => (target.len() as u64, 0),
            Body::Special(..) => (0, 0),
        }
    }
}

/// Returns the time one nanosecond later.
fn next(time: Time) -> Time {
    if time.nanoseconds >= 999_999_999 {
        Time { seconds: time.seconds.saturating_add(1), nanoseconds: 0 }
    } else {
        Time { nanoseconds: time.nanoseconds + 1, ..time }
    }
}

/// Write locks on several objects at once, taken in the order of their numbers so that two callers
/// cannot deadlock.
pub(super) struct Locked<'a> {
    guards: Vec<(u64, RwLockWriteGuard<'a, State>)>,
}

impl<'a> Locked<'a> {
    pub(super) fn new(nodes: impl IntoIterator<Item = &'a Node>) -> Self {
        let mut nodes: Vec<&Node> = nodes.into_iter().collect();
        nodes.sort_by_key(|node| node.fileid);
        nodes.dedup_by_key(|node| node.fileid);
        Self { guards: nodes.into_iter().map(|node| (node.fileid, node.write())).collect() }
    }

    /// Returns the state of one of the locked objects.
    pub(super) fn get(&self, fileid: u64) -> Result<&State> {
        let found = self.guards.iter().find(|(number, _)| *number == fileid);
        found.map(|(_, state)| &**state).ok_or(Status::ServerFault)
    }

    /// Returns the state of one of the locked objects, to be changed.
    pub(super) fn get_mut(&mut self, fileid: u64) -> Result<&mut State> {
        let found = self.guards.iter_mut().find(|(number, _)| *number == fileid);
        found.map(|(_, state)| &mut **state).ok_or(Status::ServerFault)
    }
}
