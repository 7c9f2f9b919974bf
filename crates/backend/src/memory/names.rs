use std::sync::Arc;

use comity_vfs::limits::LINK_TARGET_BYTES_MAX;
use comity_vfs::permission::{Permissions, group_and_mode_of_new};
use comity_vfs::{
    Attr, Change, Changed, Create, Cred, Device, Disk, Entry, FileType, Gid, Handle, Made, Mode,
    Name, Node, Result, SetAttr, Special, Status, Uid,
};

use super::Memory;
use super::attributes::{attr_of_living, check_values, set_times};
use super::content::Content;
use super::directory::Directory;
use super::extended::acl_bytes;
use super::limits::{ENTRY_BYTES, RETRIES_MAX};
use super::node::{Body, Locked, Meta, Node as Object, State};
use crate::default_modes::{DIRECTORY_MODE, FILE_MODE};

/// Mode of a file whose attributes come later, with the call after an exclusive CREATE.
const EXCLUSIVE_MODE: Mode = Mode::new(0o600);

pub(super) fn lookup(
    memory: &Memory,
    cred: &Cred<Disk>,
    dir: &Handle,
    name: Name<'_>,
) -> Result<Entry<Disk>> {
    let dir = memory.table.find(dir)?;
    for _ in 0..RETRIES_MAX {
        let state = dir.read();
        let attr = enter(&state, cred)?;
        let fileid = state.directory()?.find(name).ok_or(Status::NoEnt)?;
        drop(state);
        if let Ok(node) = node_of(memory, fileid) {
            return Ok(Entry { node, dir: Some(attr) });
        }
    }
    Err(Status::Delay)
}

pub(super) fn parent(memory: &Memory, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
    let dir = memory.table.find(dir)?;
    let state = dir.read();
    let parent = state.directory()?.parent;
    if parent != dir.fileid {
        enter(&state, cred)?;
    }
    drop(state);
    node_of(memory, parent)
}

pub(super) fn create(
    memory: &Memory,
    cred: &Cred<Disk>,
    dir: &Handle,
    name: Name<'_>,
    how: &Create<Disk>,
) -> Result<Made<Disk>> {
    let (set, verifier) = match *how {
        Create::Unchecked(set) | Create::Guarded(set) => (set, None),
        Create::Exclusive(verifier) => {
            (SetAttr { mode: Some(EXCLUSIVE_MODE), ..SetAttr::default() }, Some(verifier))
        }
    };
    for _ in 0..RETRIES_MAX {
        let body = Body::Regular { content: Content::default(), verifier };
        match make(memory, cred, (dir, name), body, &set)? {
            Outcome::Made(made) => return Ok(made),
            Outcome::Found(fileid, attr) => match reuse(memory, cred, fileid, how) {
                Err(Status::Stale) => {}
                node => {
                    let change = Change { before: Some(attr), after: Some(attr) };
                    return node.map(|value| Changed { value, change });
                }
            },
        }
    }
    Err(Status::Delay)
}

pub(super) fn mkdir(
    memory: &Memory,
    cred: &Cred<Disk>,
    dir: &Handle,
    name: Name<'_>,
    set: &SetAttr<Disk>,
) -> Result<Made<Disk>> {
    let body = Body::Directory(Directory::new(memory.table.find(dir)?.fileid));
    make(memory, cred, (dir, name), body, set)?.only_new()
}

pub(super) fn symlink(
    memory: &Memory,
    cred: &Cred<Disk>,
    place: (&Handle, Name<'_>),
    target: &[u8],
    set: &SetAttr<Disk>,
) -> Result<Made<Disk>> {
    match target.len() {
        0 => return Err(Status::Inval),
        length if length > LINK_TARGET_BYTES_MAX => return Err(Status::NameTooLong),
        _ if target.contains(&0) => return Err(Status::Inval),
        _ => {}
    }
    let set = SetAttr { mode: Some(Mode::new(0o777)), ..*set };
    make(memory, cred, place, Body::Symlink(target.into()), &set)?.only_new()
}

pub(super) fn mknod(
    memory: &Memory,
    cred: &Cred<Disk>,
    place: (&Handle, Name<'_>),
    special: Special,
    set: &SetAttr<Disk>,
) -> Result<Made<Disk>> {
    let (file_type, device) = match special {
        Special::Block(device) => (FileType::Block, device.checked()?),
        Special::Character(device) => (FileType::Character, device.checked()?),
        Special::Fifo => (FileType::Fifo, Device::default()),
        Special::Socket => (FileType::Socket, Device::default()),
    };
    let is_device = matches!(special, Special::Block(_) | Special::Character(_));
    if is_device && !cred.is_root() {
        return Err(Status::Perm);
    }
    make(memory, cred, place, Body::Special(file_type, device), set)?.only_new()
}

pub(super) fn remove(
    memory: &Memory,
    cred: &Cred<Disk>,
    dir: &Handle,
    name: Name<'_>,
    directory: bool,
) -> Result<Change<Disk>> {
    let dir = memory.table.find(dir)?;
    for _ in 0..RETRIES_MAX {
        let fileid = find(&dir, cred, name)?.ok_or(Status::NoEnt)?;
        let Ok(node) = memory.table.get(fileid) else { continue };
        let mut locked = Locked::new([&*dir, &*node]);
        if is_still(&locked, dir.fileid, name, Some(fileid))? {
            check_remove(&locked, cred, (dir.fileid, fileid), directory)?;
            return take_out(memory, &mut locked, (dir.fileid, name), fileid);
        }
    }
    Err(Status::Delay)
}

pub(super) fn link(
    memory: &Memory,
    cred: &Cred<Disk>,
    node: &Handle,
    dir: &Handle,
    name: Name<'_>,
) -> Result<Changed<Attr<Disk>, Disk>> {
    let node = memory.table.find(node)?;
    let dir = memory.table.find(dir)?;
    let mut locked = Locked::new([&*dir, &*node]);
    let linked = attr_of_living(locked.get(node.fileid)?)?;
    locked.get(dir.fileid)?.directory()?;
    if linked.file_type == FileType::Directory {
        return Err(Status::IsDir);
    }
    let before = enter(locked.get(dir.fileid)?, cred)?;
    if locked.get(dir.fileid)?.directory()?.find(name).is_some() {
        return Err(Status::Exist);
    }
    may_add(locked.get(dir.fileid)?, &before, cred)?;
    if linked.links >= memory.options.links_max {
        return Err(Status::MLink);
    }
    let now = memory.now();
    let state = locked.get_mut(dir.fileid)?;
    let (directory, charge) = state.directory_mut()?;
    directory.insert(charge, name, node.fileid)?;
    state.touch_data(now);
    let change = Change { before: Some(before), after: Some(state.attr()) };
    let state = locked.get_mut(node.fileid)?;
    state.meta.links += 1;
    state.touch(now);
    Ok(Changed { value: state.attr(), change })
}

/// Checks that the caller may look up names in a directory; returns its attributes.
pub(super) fn enter(state: &State, cred: &Cred<Disk>) -> Result<Attr<Disk>> {
    let attr = attr_of_living(state)?;
    state.directory()?;
    state.object(&attr).check(cred, Permissions::EXECUTE)?;
    Ok(attr)
}

/// Checks whether the caller may add names to a directory that was checked by [`enter`].
pub(super) fn may_add(state: &State, attr: &Attr<Disk>, cred: &Cred<Disk>) -> Result<()> {
    state.object(attr).check(cred, Permissions::WRITE | Permissions::EXECUTE)
}

/// Returns the fileid of a name at this moment.
pub(super) fn find(dir: &Object, cred: &Cred<Disk>, name: Name<'_>) -> Result<Option<u64>> {
    let state = dir.read();
    enter(&state, cred)?;
    Ok(state.directory()?.find(name))
}

/// Returns whether a name still has the object that it had before its directory was locked.
pub(super) fn is_still(
    locked: &Locked<'_>,
    dir: u64,
    name: Name<'_>,
    fileid: Option<u64>,
) -> Result<bool> {
    let state = locked.get(dir)?;
    attr_of_living(state)?;
    Ok(state.directory()?.find(name) == fileid)
}

/// Removes one link of an object, and with its last link the object from the table.
pub(super) fn unlink(memory: &Memory, state: &mut State) {
    state.meta.links = if state.is_directory() { 0 } else { state.meta.links - 1 };
    state.touch(memory.now());
    if state.is_removed() {
        memory.table.remove(state.meta.fileid);
    }
}

fn check_remove(
    locked: &Locked<'_>,
    cred: &Cred<Disk>,
    (dir, fileid): (u64, u64),
    directory: bool,
) -> Result<()> {
    let (dir, state) = (locked.get(dir)?, locked.get(fileid)?);
    dir.object(&dir.attr()).check_delete(cred, &state.attr())?;
    match &state.body {
        Body::Directory(_) if !directory => Err(Status::IsDir),
        Body::Directory(entries) if !entries.is_empty() => Err(Status::NotEmpty),
        Body::Directory(_) => Ok(()),
        _ if directory => Err(Status::NotDir),
        _ => Ok(()),
    }
}

fn take_out(
    memory: &Memory,
    locked: &mut Locked<'_>,
    (dir, name): (u64, Name<'_>),
    fileid: u64,
) -> Result<Change<Disk>> {
    let is_directory = locked.get(fileid)?.is_directory();
    let state = locked.get_mut(dir)?;
    let before = state.attr();
    let (directory, charge) = state.directory_mut()?;
    directory.remove(charge, name);
    directory.subdirectories -= u32::from(is_directory);
    state.touch_data(memory.now());
    let after = state.attr();
    unlink(memory, locked.get_mut(fileid)?);
    Ok(Change { before: Some(before), after: Some(after) })
}

#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
enum Outcome {
    Made(Made<Disk>),
    /// The name exists: the object's number and the directory's attributes.
    Found(u64, Attr<Disk>),
}

impl Outcome {
    fn only_new(self) -> Result<Made<Disk>> {
        match self {
            Self::Made(made) => Ok(made),
            Self::Found(..) => Err(Status::Exist),
        }
    }
}

/// Makes an object under a name, unless the name exists.
fn make(
    memory: &Memory,
    cred: &Cred<Disk>,
    (dir, name): (&Handle, Name<'_>),
    body: Body,
    set: &SetAttr<Disk>,
) -> Result<Outcome> {
    let dir = memory.table.find(dir)?;
    let mut state = dir.write();
    let before = enter(&state, cred)?;
    if let Some(fileid) = state.directory()?.find(name) {
        return Ok(Outcome::Found(fileid, before));
    }
    may_add(&state, &before, cred)?;
    let is_directory = matches!(body, Body::Directory(_));
    if is_directory && before.links >= memory.options.links_max {
        return Err(Status::MLink);
    }
    let node = newborn(memory, cred, (&state, &before), body, set)?;
    let (directory, charge) = state.directory_mut()?;
    directory.insert(charge, name, node.fileid)?;
    directory.subdirectories += u32::from(is_directory);
    state.touch_data(memory.now());
    let value = Node { handle: node.handle, attr: node.read().attr() };
    memory.table.insert(node);
    let change = Change { before: Some(before), after: Some(state.attr()) };
    Ok(Outcome::Made(Changed { value, change }))
}

/// Makes an object that no other thread can access yet, with the group and ACL that it inherits
/// from its directory.
fn newborn(
    memory: &Memory,
    cred: &Cred<Disk>,
    (dir, dir_attr): (&State, &Attr<Disk>),
    body: Body,
    set: &SetAttr<Disk>,
) -> Result<Object> {
    let fileid = memory.table.fileid_next();
    let mut state = memory.state(fileid, body, Mode::default(), (cred.uid, cred.gid))?;
    let mode = set.mode.unwrap_or(if state.is_directory() { DIRECTORY_MODE } else { FILE_MODE });
    let (gid, mode) = group_and_mode_of_new(cred, dir_attr, state.file_type(), mode);
    (state.meta.gid, state.meta.mode) = (gid, mode);
    inherit_acls(&mut state, dir)?;
    let attr = state.attr();
    state.object(&attr).check_setattr(cred, &SetAttr { size: None, mode: None, ..*set })?;
    check_values(memory, &state, set)?;
    state.meta.uid = set.uid.unwrap_or(state.meta.uid);
    state.meta.gid = set.gid.unwrap_or(state.meta.gid);
    if let Some(size) = set.size {
        let (content, charge) = state.content_mut()?;
        content.set_size(charge, size);
    }
    set_times(&mut state, set, memory.now());
    Ok(Object::new(fileid, memory.table.handle(fileid)?, state))
}

fn inherit_acls(state: &mut State, dir: &State) -> Result<()> {
    let Some(default) = &dir.default_acl else { return Ok(()) };
    if matches!(state.body, Body::Symlink(_)) {
        return Ok(());
    }
    let (acl, mode) = default.clone().inherited(state.meta.mode);
    state.meta.mode = mode;
    state.acl = Some(acl).filter(|acl| !acl.is_minimal());
    state.default_acl = state.is_directory().then(|| default.clone());
    let bytes = acl_bytes(state.acl.as_ref()) + acl_bytes(state.default_acl.as_ref());
    state.charge.grow(bytes)
}

/// Returns an existing file, if the caller accepts one.
fn reuse(
    memory: &Memory,
    cred: &Cred<Disk>,
    fileid: u64,
    how: &Create<Disk>,
) -> Result<Node<Disk>> {
    let node = memory.table.get(fileid)?;
    let verifier = match node.read().body {
        Body::Regular { verifier, .. } => verifier,
        _ => return Err(Status::Exist),
    };
    match *how {
        Create::Guarded(_) => return Err(Status::Exist),
        Create::Exclusive(wanted) if verifier != Some(wanted) => return Err(Status::Exist),
        Create::Unchecked(SetAttr { size: Some(size), .. }) => {
            let set = SetAttr { size: Some(size), ..SetAttr::default() };
            super::attributes::setattr(memory, cred, &node.handle, &set, None)?;
        }
        Create::Exclusive(_) | Create::Unchecked(_) => {}
    }
    let attr = attr_of_living(&node.read())?;
    Ok(Node { handle: node.handle, attr })
}

fn node_of(memory: &Memory, fileid: u64) -> Result<Node<Disk>> {
    let node: Arc<Object> = memory.table.get(fileid)?;
    let attr = attr_of_living(&node.read())?;
    Ok(Node { handle: node.handle, attr })
}

impl Memory {
    /// Returns a new object's state: one link, the present times, and its space charged.
    pub(super) fn state(
        &self,
        fileid: u64,
        body: Body,
        mode: Mode,
        (uid, gid): (Uid<Disk>, Gid<Disk>),
    ) -> Result<State> {
        let mut charge = self.account.open()?;
        charge.grow(ENTRY_BYTES + if let Body::Symlink(t) = &body { t.len() as u64 } else { 0 })?;
        let now = self.now();
        let fsid = self.table.tag();
        let (atime, mtime, ctime) = (now, now, now);
        let meta = Meta { fsid, fileid, mode, links: 1, uid, gid, atime, mtime, ctime };
        let (acl, default_acl) = (None, None);
        Ok(State { meta, acl, default_acl, xattrs: Default::default(), body, charge })
    }
}
