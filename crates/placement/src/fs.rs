//! The verbs of [`Placed`]. Those on data and sizes use the place of a file; the others are passed
//! to the file system below.

use std::ops::ControlFlow;
use std::sync::MutexGuard;

use comity_vfs::{
    Access, Acl, AclKind, Attr, Change, Changed, Create, Cred, Data, Disk, Entry, FileType, Fs,
    Handle, Listed, Listing, LocalLocks, Made, Name, Node, Placement, Properties, Read, ReadInto,
    Result, Seek, SetAttr, Space, Special, Status, Target, Time, Written, XattrMode,
};

use crate::holds::Use;
use crate::placed::{ATTRIBUTE, FileUse, Placed};
use crate::record::PlaceRecord;
use crate::sizes::SetIdBits;
use crate::small_files::must_be_own;

impl Fs for Placed {
    fn root(&self) -> Handle {
        self.below.root()
    }

    fn volume(&self, node: &Handle) -> u64 {
        self.below.volume(node)
    }

    fn properties(&self, node: &Handle) -> Result<Properties> {
        self.below.properties(node)
    }

    fn statfs(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        self.below.statfs(cred, node)
    }

    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        self.below.getattr(node).map(|attr| self.known.used.shown(node, attr))
    }

    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        mut guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        let changes_rights = set.mode.is_some() || set.uid.is_some() || set.gid.is_some();
        let using = match set.size {
            Some(size) => Some(self.begin_resize(cred, node, size, &mut guard)?),
            None if changes_rights => Some(self.begin_use(node, Use::Look)?),
            None => None,
        };
        let Some(record) = using.as_ref().and_then(|using| using.place.as_deref()) else {
            let change = self.below.setattr(cred, node, set, guard)?;
            return Ok(self.known.used.shown_change(node, change));
        };
        let mut turn = self.lock(node);
        let before = match set.size {
            Some(_) => self.begin_cut(&mut turn, node)?,
            None => 0,
        };
        let change = self.below.setattr(cred, node, set, guard)?;
        if changes_rights {
            self.fence_rights(&turn, (node, record))?;
            self.files.due_labels().note(node);
        }
        if let Some(size) = set.size {
            let used = self.cut_data(&turn, (node, record), (before, size))?;
            self.known.used.note(node, used);
        }
        Ok(self.known.used.shown_change(node, change))
    }

    fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        let (granted, attr) = self.below.access(cred, node, wanted)?;
        Ok((granted, self.known.used.shown(node, attr)))
    }

    fn owns(&self, cred: &Cred<Disk>, node: &Handle) -> Result<bool> {
        self.below.owns(cred, node)
    }

    fn lookup(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>> {
        let entry = self.below.lookup(cred, dir, name)?;
        Ok(Entry { node: self.known.used.shown_node(entry.node), ..entry })
    }

    fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        self.below.parent(cred, dir)
    }

    fn directories_of(&self, node: &Handle) -> Result<Vec<Handle>> {
        self.below.directories_of(node)
    }

    fn readlink(&self, cred: &Cred<Disk>, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        self.below.readlink(cred, node)
    }

    fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        let using = self.begin_use(node, Use::Look)?;
        let Some(record) = &using.place else {
            return self.read_own(cred, node, (offset, count), into);
        };
        let attr = match into.opened {
            true => self.below.getattr(node)?,
            false => self.judge(cred, node, Access::READ)?,
        };
        let length = attr.size.saturating_sub(offset).min(count.into());
        let before = into.bytes.len();
        self.files.read(record, (offset, length), into.bytes).inspect_err(|_| {
            into.bytes.truncate(before);
        })?;
        let eof = offset.saturating_add(length) >= attr.size;
        Ok(Read {
            data: Data::Appended(length as u32),
            eof,
            attr: Some(self.known.used.shown(node, attr)),
        })
    }

    fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        let end = end_of(offset, data.len() as u64);
        let using = self.begin_growth(Some(cred), node, end)?;
        let Some(record) = &using.place else {
            return self.below.write(cred, node, offset, data);
        };
        self.judge(cred, node, Access::MODIFY)?;
        let set_id = SetIdBits::after_write_of(cred);
        let after = self.write_placed(record, (node, set_id), offset, data)?;
        let change = Change { before: None, after: Some(after) };
        Ok(Changed { value: data.len() as u32, change })
    }

    fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        let using = self.begin_growth(None, node, end_of(offset, data.len() as u64))?;
        let Some(record) = &using.place else {
            return self.below.write_opened(cred, node, offset, data);
        };
        let set_id = SetIdBits::after_write_of(cred);
        self.write_placed(record, (node, set_id), offset, data).map(|_| data.len() as u32)
    }

    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        let using = match self.begin_use(node, Use::Look) {
            // A file that has lost its last name has no data on data servers.
            Err(Status::Stale) => return self.below.commit(node),
            using => using?,
        };
        if let Some(record) = &using.place {
            self.known.used.note(node, self.commit_data((node, record))?);
        }
        let attr = self.below.commit(node)?;
        Ok(attr.map(|attr| self.known.used.shown(node, attr)))
    }

    fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        let Create::Unchecked(SetAttr { size: Some(size), .. }) = how else {
            return self.create_whole(cred, dir, name, how);
        };
        // A file that is there already may be moving to other data servers.
        let emptied = self.used_by_name(dir, name)?;
        if let Some((file, FileUse { place: Some(record), .. })) = &emptied {
            return self.create_over(cred, (file, record), (dir, name), (how, *size));
        }
        let made = self.create_placed(cred, dir, name, how)?;
        drop(emptied);
        self.cut_new(&made.value.handle, *size)?;
        self.with_current_attr(made)
    }

    fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.below.mkdir(cred, dir, name, set)
    }

    fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.below.symlink(cred, dir, name, target, set)
    }

    fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.below.mknod(cred, dir, name, special, set)
    }

    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        let last = self.last_name(dir, name)?;
        let change = self.below.remove(cred, dir, name)?;
        self.remove_data(last);
        Ok(change)
    }

    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.below.rmdir(cred, dir, name)
    }

    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        let replaced = match self.last_name(target.0, target.1)? {
            // A file that is renamed to itself is not replaced.
            Some((file, _)) if self.is_named(source, &file) => None,
            replaced => replaced,
        };
        let changes = self.below.rename(cred, source, target)?;
        self.remove_data(replaced);
        self.note_new_name(target);
        Ok(changes)
    }

    fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        let linked = self.below.link(cred, node, dir, name)?;
        Ok(Changed { value: self.known.used.shown(node, linked.value), ..linked })
    }

    fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<Attr<Disk>> {
        self.below.readdir(cred, dir, cookie, wanted, &mut |entry| {
            let node = entry.node.map(|node| self.known.used.shown_node(node));
            visit(&Listing { node, ..*entry })
        })
    }

    fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        self.below.getacl(node, kind)
    }

    fn setacl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        let using = self.begin_use(node, Use::Look)?;
        let Some(record) = &using.place else {
            return self.below.setacl(cred, node, kind, acl);
        };
        let turn = self.lock(node);
        let change = self.below.setacl(cred, node, kind, acl)?;
        self.fence_rights(&turn, (node, record))?;
        Ok(self.known.used.shown_change(node, change))
    }

    fn getxattr(&self, cred: &Cred<Disk>, node: &Handle, name: Name<'_>) -> Result<Vec<u8>> {
        match name.bytes() {
            ATTRIBUTE => Err(Status::NoXattr),
            _ => self.below.getxattr(cred, node, name),
        }
    }

    fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        match name.bytes() {
            ATTRIBUTE => Err(Status::Perm),
            _ => {
                let change = self.below.setxattr(cred, node, name, value, mode)?;
                Ok(self.known.used.shown_change(node, change))
            }
        }
    }

    fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        let mut names = self.below.listxattr(cred, node)?;
        names.retain(|name| **name != *ATTRIBUTE);
        Ok(names)
    }

    fn seek(&self, cred: &Cred<Disk>, node: &Handle, offset: u64, what: Seek) -> Result<u64> {
        let _using = self.begin_own_use(node, Use::Look)?;
        self.below.seek(cred, node, offset, what)
    }

    fn allocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        let using = self.begin_growth(Some(cred), node, end_of(offset, length))?;
        must_be_own(&using)?;
        self.below.allocate(cred, node, offset, length)
    }

    fn deallocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        let _using = self.begin_own_use(node, Use::Change)?;
        self.below.deallocate(cred, node, offset, length)
    }

    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        self.below.local_locks()
    }

    fn placement(&self) -> Option<&dyn Placement> {
        Some(self)
    }

    fn release_removed(&self) {
        self.below.release_removed();
    }

    fn copy(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        let _using = self.begin_own_copy(cred, source, target, length)?;
        self.below.copy(cred, source, target, length)
    }

    fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        let _using = self.begin_own_copy(cred, source, target, length)?;
        self.below.clone_range(cred, source, target, length)
    }
}

/// A file that loses its last name or its bytes, and the use of it that is under way.
type LastName<'p> = Option<(Handle, FileUse<'p>)>;

/// The offset after `length` bytes from `offset` on; `None` if no file is so long.
const fn end_of(offset: u64, length: u64) -> Option<u64> {
    offset.checked_add(length)
}

impl Placed {
    fn write_placed(
        &self,
        record: &PlaceRecord,
        (node, set_id): (&Handle, SetIdBits),
        offset: u64,
        data: &[u8],
    ) -> Result<Attr<Disk>> {
        let end = offset.checked_add(data.len() as u64).ok_or(Status::FBig)?;
        if data.is_empty() {
            return self.getattr(node);
        }
        self.write_data((node, record), offset, data)?;
        self.note(node, (Some(end), set_id))
    }

    /// Has data servers refuse all handles that were given out before the rights to a file changed.
    /// If one does not answer, the caller repeats its change.
    fn fence_rights(
        &self,
        turn: &MutexGuard<'_, u64>,
        file: (&Handle, &PlaceRecord),
    ) -> Result<()> {
        self.fence_data(turn, file).map_err(|status| {
            let name = file.1.name();
            tracing::warn!(%status, name, "a data server was not told of a change of rights");
            Status::Delay
        })
    }

    /// Creates a file with a place, or finds it.
    fn create_placed(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        let made = self.below.create(cred, dir, name, how)?;
        self.known.names.note(&made.value.handle, (dir, name));
        self.place(&made.value)?;
        Ok(made)
    }

    /// Creates a file without a size, or finds it.
    fn create_whole(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        let made = self.create_placed(cred, dir, name, how)?;
        if self.settings.placed_from_bytes().is_some() {
            return Ok(Changed { value: self.known.used.shown_node(made.value), ..made });
        }
        self.with_current_attr(made)
    }

    /// Creates a file with a size where there is one on data servers already, which is truncated.
    fn create_over(
        &self,
        cred: &Cred<Disk>,
        (file, record): (&Handle, &PlaceRecord),
        (dir, name): (&Handle, Name<'_>),
        (how, size): (&Create<Disk>, u64),
    ) -> Result<Made<Disk>> {
        let mut turn = self.lock(file);
        let before = self.begin_cut(&mut turn, file)?;
        let made = self.below.create(cred, dir, name, how)?;
        if made.value.handle == *file {
            self.cut_data(&turn, (file, record), (before, size))?;
            drop(turn);
        } else {
            // Another file has got the name meanwhile.
            drop(turn);
            self.known.names.note(&made.value.handle, (dir, name));
            self.place(&made.value)?;
            self.cut_new(&made.value.handle, size)?;
        }
        self.with_current_attr(made)
    }

    /// Removes the bytes of a file that was just created from the offset `size` on.
    fn cut_new(&self, file: &Handle, size: u64) -> Result<()> {
        let Some(using) = self.using(file, Use::Change)? else { return Ok(()) };
        self.cut_data(&self.lock(file), (file, &using.record), (0, size)).map(drop)
    }

    /// The extended attribute with the place has changed the ctime of a new file.
    fn with_current_attr(&self, made: Made<Disk>) -> Result<Made<Disk>> {
        let attr = self.getattr(&made.value.handle)?;
        Ok(Changed { value: Node { attr, ..made.value }, ..made })
    }

    /// Begins a change of the file of a name, if there is one.
    fn used_by_name(&self, dir: &Handle, name: Name<'_>) -> Result<LastName<'_>> {
        let Ok(Entry { node, .. }) = self.below.lookup(&Cred::root(), dir, name) else {
            return Ok(None);
        };
        if node.attr.file_type != FileType::Regular {
            return Ok(None);
        }
        Ok(Some((node.handle, self.begin_use(&node.handle, Use::Change)?)))
    }

    /// Begins a change of the file of a name, if it has no other name.
    fn last_name(&self, dir: &Handle, name: Name<'_>) -> Result<LastName<'_>> {
        let Ok(Entry { node, .. }) = self.below.lookup(&Cred::root(), dir, name) else {
            return Ok(None);
        };
        if node.attr.file_type != FileType::Regular || node.attr.links > 1 {
            return Ok(None);
        }
        // A file with a damaged place can be removed; its data stay on the data servers.
        match self.begin_use(&node.handle, Use::Change) {
            Err(Status::Delay) => Err(Status::Delay),
            using => Ok(using.ok().map(|using| (node.handle, using))),
        }
    }

    /// Notes that a placed file has got a name, so that its labels are written again.
    fn note_new_name(&self, (dir, name): (&Handle, Name<'_>)) {
        let Ok(Entry { node, .. }) = self.below.lookup(&Cred::root(), dir, name) else { return };
        let is_placed = || matches!(self.record(&node.handle), Ok(Some(_)));
        if node.attr.file_type == FileType::Regular && is_placed() {
            self.known.names.note(&node.handle, (dir, name));
            self.files.due_labels().note_named(&node.handle, (dir, name));
        }
    }

    fn is_named(&self, (dir, name): (&Handle, Name<'_>), file: &Handle) -> bool {
        let found = self.below.lookup(&Cred::root(), dir, name);
        found.is_ok_and(|entry| entry.node.handle == *file)
    }

    /// Removes the data of a file that has lost its last name.
    fn remove_data(&self, last: LastName<'_>) {
        let Some((file, using)) = last else { return };
        self.forget(&file);
        let Some(record) = &using.place else { return };
        if let Err(status) = self.files.remove(record) {
            let name = record.name();
            tracing::warn!(%status, name, "data of a removed file stay on a data server");
        }
    }
}
