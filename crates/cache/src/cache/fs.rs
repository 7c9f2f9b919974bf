//! The verbs of the cache.

use std::ops::ControlFlow;

use comity_vfs::{
    Access, Acl, AclKind, Attr, Change, Changed, Create, Cred, Disk, Entry, Fs, Handle, Listed,
    Listing, LocalLocks, Made, Name, Node, OpenFiles, Properties, Read, ReadInto, Result, Seek,
    SetAttr, Space, Special, Target, Time, Written, XattrMode,
};

use super::Cache;

impl Fs for Cache {
    fn root(&self) -> Handle {
        self.fs.root()
    }

    fn volume(&self, node: &Handle) -> u64 {
        self.fs.volume(node)
    }

    fn properties(&self, node: &Handle) -> Result<Properties> {
        self.fs.properties(node)
    }

    fn owns(&self, cred: &Cred<Disk>, node: &Handle) -> Result<bool> {
        self.fs.owns(cred, node)
    }

    fn statfs(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Space> {
        self.fs.statfs(cred, node)
    }

    fn getattr(&self, node: &Handle) -> Result<Attr<Disk>> {
        let waits = self.waits(node);
        let attr = self.attr(node)?;
        Ok(self.shown_with(node, attr, waits))
    }

    fn setattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        self.change_attributes(cred, node, set, guard)
    }

    fn access(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        wanted: Access,
    ) -> Result<(Access, Attr<Disk>)> {
        let (granted, attr) = self.rights(cred, node, wanted)?;
        Ok((granted, self.shown(node, attr)))
    }

    fn lookup(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Entry<Disk>> {
        self.find(cred, dir, name)
    }

    fn parent(&self, cred: &Cred<Disk>, dir: &Handle) -> Result<Node<Disk>> {
        self.fs.parent(cred, dir)
    }

    fn readlink(&self, cred: &Cred<Disk>, node: &Handle) -> Result<(Target, Attr<Disk>)> {
        self.target(cred, node)
    }

    fn read(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        count: u32,
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        self.read_cached(cred, node, (offset, count), into)
    }

    fn write(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        self.write_cached(cred, node, (offset, data), false)
    }

    fn write_opened(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<u32> {
        self.write_cached(cred, node, (offset, data), true).map(|written| written.value)
    }

    fn commit(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        self.commit_file(node)
    }

    fn create(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        how: &Create<Disk>,
    ) -> Result<Made<Disk>> {
        self.flush_cut(cred, (dir, name), how);
        self.make(cred, (dir, name), || self.fs.create(cred, dir, name, how))
    }

    fn mkdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.make_directory(cred, (dir, name), set)
    }

    fn symlink(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.make(cred, (dir, name), || self.fs.symlink(cred, dir, name, target, set))
    }

    fn mknod(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        name: Name<'_>,
        special: Special,
        set: &SetAttr<Disk>,
    ) -> Result<Made<Disk>> {
        self.make(cred, (dir, name), || self.fs.mknod(cred, dir, name, special, set))
    }

    fn remove(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.flush_name(cred, (dir, name));
        self.take_away(cred, (dir, name), || self.fs.remove(cred, dir, name))
    }

    fn rmdir(&self, cred: &Cred<Disk>, dir: &Handle, name: Name<'_>) -> Result<Change<Disk>> {
        self.take_away(cred, (dir, name), || self.fs.rmdir(cred, dir, name))
    }

    fn rename(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, Name<'_>),
        target: (&Handle, Name<'_>),
    ) -> Result<(Change<Disk>, Change<Disk>)> {
        self.flush_name(cred, target);
        // The name is a part of what the change attribute counts: after a crash, or without the
        // delegation, unsent data would seem to be over another version.
        self.flush_name(cred, source);
        let asked = self.attributes.ask();
        let changes = self.fs.rename(cred, source, target);
        if changes.is_err() {
            self.doubt(source);
            self.doubt(target);
        }
        let changes = changes?;
        self.note_renamed(cred, (source, target), &changes, asked);
        Ok(changes)
    }

    fn link(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        dir: &Handle,
        name: Name<'_>,
    ) -> Result<Changed<Attr<Disk>, Disk>> {
        self.flush(node)?;
        let made = self.make(cred, (dir, name), || {
            let linked = self.fs.link(cred, node, dir, name)?;
            let value = Node { handle: *node, attr: linked.value };
            Ok(Changed { value, change: linked.change })
        })?;
        Ok(Changed { value: made.value.attr, change: made.change })
    }

    fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: &mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>,
    ) -> Result<Attr<Disk>> {
        self.list(cred, dir, (cookie, wanted), visit)
    }

    fn getacl(&self, node: &Handle, kind: AclKind) -> Result<Option<Acl<Disk>>> {
        self.fs.getacl(node, kind)
    }

    fn setacl(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        kind: AclKind,
        acl: Option<&Acl<Disk>>,
    ) -> Result<Change<Disk>> {
        self.flush(node)?;
        let change = self.change(node, || self.fs.setacl(cred, node, kind, acl))?;
        self.attributes.disown(node);
        Ok(change)
    }

    fn getxattr(&self, cred: &Cred<Disk>, node: &Handle, name: Name<'_>) -> Result<Vec<u8>> {
        self.fs.getxattr(cred, node, name)
    }

    fn setxattr(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        name: Name<'_>,
        value: Option<&[u8]>,
        mode: XattrMode,
    ) -> Result<Change<Disk>> {
        self.flush(node)?;
        let change = self.change(node, || self.fs.setxattr(cred, node, name, value, mode))?;
        self.attributes.disown(node);
        Ok(change)
    }

    fn listxattr(&self, cred: &Cred<Disk>, node: &Handle) -> Result<Vec<Box<[u8]>>> {
        self.fs.listxattr(cred, node)
    }

    fn seek(&self, cred: &Cred<Disk>, node: &Handle, offset: u64, what: Seek) -> Result<u64> {
        self.flush(node)?;
        self.fs.seek(cred, node, offset, what)
    }

    fn allocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        self.flush(node)?;
        self.change(node, || self.fs.allocate(cred, node, offset, length))
    }

    fn deallocate(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        length: u64,
    ) -> Result<Change<Disk>> {
        self.flush(node)?;
        self.replace_data(node, || {
            let change = self.fs.deallocate(cred, node, offset, length)?;
            Ok(Changed { value: (), change })
        })
        .map(|changed| changed.change)
    }

    fn local_locks(&self) -> Option<&dyn LocalLocks> {
        self.fs.local_locks()
    }

    fn open_files(&self) -> Option<&dyn OpenFiles> {
        self.fs.open_files().map(|_| self as &dyn OpenFiles)
    }

    fn release_removed(&self) {
        self.fs.release_removed();
    }

    fn copy(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Changed<u64, Disk>> {
        self.flush(source.0)?;
        self.flush(target.0)?;
        self.replace_data(target.0, || self.fs.copy(cred, source, target, length))
    }

    fn clone_range(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<Change<Disk>> {
        self.flush(source.0)?;
        self.flush(target.0)?;
        self.replace_data(target.0, || {
            let change = self.fs.clone_range(cred, source, target, length)?;
            Ok(Changed { value: (), change })
        })
        .map(|changed| changed.change)
    }
}

impl Cache {
    /// Sends unsent data of an existing file that a create truncates, so that it cannot reappear
    /// later.
    pub(super) fn flush_cut(
        &self,
        cred: &Cred<Disk>,
        place: (&Handle, Name<'_>),
        how: &Create<Disk>,
    ) {
        if matches!(how, Create::Unchecked(set) if set.size.is_some()) {
            self.flush_name(cred, place);
        }
    }

    /// Sends unsent data of a file whose name is about to be removed or changed. It may have
    /// another name.
    fn flush_name(&self, cred: &Cred<Disk>, place: (&Handle, Name<'_>)) {
        if self.dirty.bytes() == 0 {
            return;
        }
        let known = self.known_node(cred, place);
        let found = || self.fs.lookup(cred, place.0, place.1).ok().map(|found| found.node.handle);
        if let Some(node) = known.or_else(found)
            && let Err(status) = self.flush(&node)
        {
            tracing::debug!(%status, "data of a file that loses a name could not be written");
        }
    }

    /// Changes the data of a file other than by a write. All its pages are dropped, because the
    /// reply may not describe the new state of the file.
    fn replace_data<T>(
        &self,
        node: &Handle,
        work: impl FnOnce() -> Result<Changed<T, Disk>>,
    ) -> Result<Changed<T, Disk>> {
        let asked = self.attributes.ask();
        let changed = work();
        // A change that failed may still have been made.
        self.store.restart(&self.file(node));
        let change = changed.as_ref().map_or(Change::UNKNOWN, |changed| changed.change);
        self.note_own(node, &change, asked);
        changed
    }

    fn change_attributes(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        set: &SetAttr<Disk>,
        guard: Option<Time>,
    ) -> Result<Change<Disk>> {
        // Callers have seen the attributes with the unsent data, so those are the attributes before
        // this change, if no other change comes between.
        let waits = self.waits(node);
        let seen = waits.and_then(|_| self.attributes.last(node));
        let seen = seen.map(|attr| self.shown_with(node, attr, waits));
        // Send the data first: a later write would change a time or size that is set now.
        self.flush(node)?;
        let known = self.attributes.last(node).map(|attr| attr.change);
        let change = self.change(node, || {
            let change = self.fs.setattr(cred, node, set, guard);
            self.carry_cut(node, change.as_ref().unwrap_or(&Change::UNKNOWN), set);
            change
        })?;
        let seen = seen.filter(|_| change.before.map(|attr| attr.change) == known);
        let before = change.before.map(|attr| seen.unwrap_or_else(|| self.shown(node, attr)));
        self.attributes.disown(node);
        Ok(Change { before, ..change })
    }

    /// Keeps the pages of a file valid across a change of its attributes.
    fn carry_cut(&self, node: &Handle, change: &Change<Disk>, set: &SetAttr<Disk>) {
        match (change.before, change.after) {
            (Some(before), Some(after)) => {
                let after = super::attributes::version(&after);
                self.store.carry(&self.file(node), before.change, after);
            }
            _ if set.size.is_some() => self.store.restart(&self.file(node)),
            _ => {}
        }
    }
}
