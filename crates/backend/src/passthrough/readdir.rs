use std::ffi::CStr;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::Arc;

use comity_vfs::Node as Found;
use comity_vfs::{Attr, Cred, Disk, Handle, Listed, Listing, Name, Result, Status};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat};

use super::Passthrough;
use super::attr::{attr, ctime};
use super::cursor::{Batch, Cursor, Item, Version};
use super::limits::SNAPSHOT_STEP;
use super::lookup::found_node;
use super::node::Node;
use super::snapshot::{Remembered, Snapshot};
use super::verdict::{Rights, is_past};

/// What is called with each entry.
pub(super) type Visit<'a> = &'a mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>;

/// A listing under way.
struct Show<'a> {
    dir: &'a Node,
    /// Whether entries are shown with their objects.
    nodes: bool,
    visit: Visit<'a>,
    /// Behind which entry it goes on.
    cookie: u64,
}

impl Passthrough {
    /// See [`comity_vfs::Fs::readdir`].
    pub(super) fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: Visit<'_>,
    ) -> Result<Attr<Disk>> {
        let dir = self.directory(dir)?;
        let stat = self.stat(&dir)?;
        let asked = Rights::READ.union(Rights::EXECUTE);
        let rights = self.rights(cred, &dir, &stat, asked)?;
        if !rights.contains(Rights::READ) {
            return Err(Status::Acces);
        }
        let nodes = wanted == Listed::Nodes && rights.contains(Rights::EXECUTE);
        let version = version(&dir, &stat);
        let snapshot = self.snapshot(&dir, cookie, version)?;
        let mut show = Show { dir: &dir, nodes, visit, cookie };
        self.identity.caller(cred)?;
        let done =
            snapshot.is_some_and(|snapshot| self.show_snapshot(&mut show, &snapshot, version));
        if !done {
            self.show_cursor(cred, &mut show, version)?;
        }
        Ok(attr(&dir.volume, &stat))
    }

    /// All entries of a directory, if it has been quiet and is not too big.
    fn snapshot(&self, dir: &Node, cookie: u64, version: Version) -> Result<Option<Arc<Snapshot>>> {
        match self.snapshots.of(&dir.handle, version) {
            Remembered::Whole(snapshot) => return Ok(Some(snapshot)),
            Remembered::TooBig => return Ok(None),
            // Entries read while the directory changes would be out of date at once.
            Remembered::Nothing if cookie != 0 || !is_past(version.0) => return Ok(None),
            Remembered::Nothing => {}
        }
        let file = File::from(self.open_data(dir, OFlags::RDONLY | OFlags::DIRECTORY)?);
        let snapshot = Snapshot::read(&file, version)?;
        if self.version_now(dir) != Some(version) {
            return Ok(None);
        }
        Ok(self.snapshots.keep(dir.handle, snapshot))
    }

    /// Shows entries of a snapshot, a few at a time. What is shown was so while the directory had
    /// the snapshot's version: no name can have got another object meanwhile. Tells whether the
    /// listing is done.
    fn show_snapshot(&self, show: &mut Show<'_>, snapshot: &Snapshot, version: Version) -> bool {
        let Some(mut position) = snapshot.position(show.cookie) else { return false };
        let mut step = Vec::with_capacity(SNAPSHOT_STEP);
        loop {
            let rest = snapshot.batch.items.get(position..).unwrap_or_default();
            if rest.is_empty() {
                return true;
            }
            step.clear();
            for (index, _) in rest.iter().take(SNAPSHOT_STEP).enumerate() {
                step.push(self.remembered_entry(show, snapshot, position + index));
            }
            if show.nodes && self.version_now(show.dir) != Some(version) {
                return false;
            }
            for (item, node) in rest.iter().zip(&step) {
                if show.entry(&snapshot.batch, item, *node).is_break() {
                    return true;
                }
            }
            position += step.len();
        }
    }

    /// The object of an entry of a snapshot, by the descriptor of a node in use or else by its
    /// name.
    fn remembered_entry(
        &self,
        show: &Show<'_>,
        snapshot: &Snapshot,
        position: usize,
    ) -> Option<Found<Disk>> {
        if !show.nodes {
            return None;
        }
        let (dir, item) = (show.dir, snapshot.batch.items.get(position)?);
        let name = snapshot.batch.name(item);
        if let Some(root) = self.volumes.mounted_at(&dir.handle, name) {
            return self.look(&root).ok().map(|(node, stat)| found_node(&node, &stat));
        }
        let place = snapshot.handle(position)?;
        let handle = match place.get() {
            Some(handle) => *handle,
            None => {
                let handle = dir.volume.name(dir.fd(), name).ok()?;
                self.places.learn(&handle, &dir.handle, name);
                *place.get_or_init(|| handle)
            }
        };
        let stat = match self.nodes.get(&handle) {
            Some(node) => node.stat().ok()?,
            None => statat(dir.fd(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?,
        };
        Some(Found { handle, attr: attr(&dir.volume, &stat) })
    }

    /// Shows entries as the kernel lists them now.
    fn show_cursor(&self, cred: &Cred<Disk>, show: &mut Show<'_>, version: Version) -> Result<()> {
        let mut cursor = self.cursor(show.dir, show.cookie)?;
        cursor.seek(show.cookie, version)?;
        self.identity.caller(cred)?;
        loop {
            let (batch, items) = cursor.rest()?;
            if items.is_empty() {
                break;
            }
            let mut shown = 0;
            for item in items {
                let node = self.present_entry(show, batch.name(item));
                if show.entry(batch, item, node).is_break() {
                    break;
                }
                shown += 1;
            }
            let all = shown == items.len();
            cursor.advance(shown);
            if !all {
                break;
            }
        }
        self.cursors.put(cursor);
        Ok(())
    }

    fn cursor(&self, dir: &Node, cookie: u64) -> Result<Cursor> {
        if let Some(cursor) = self.cursors.take(&dir.handle, cookie) {
            return Ok(cursor);
        }
        let opened = self.open_data(dir, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Cursor::new(dir.handle, File::from(opened)))
    }

    /// The object that a name has now, if it is still there: never the attributes of one with the
    /// handle of another.
    fn present_entry(&self, show: &Show<'_>, name: &CStr) -> Option<Found<Disk>> {
        if !show.nodes {
            return None;
        }
        let dir = show.dir;
        if let Some(root) = self.volumes.mounted_at(&dir.handle, name) {
            return self.look(&root).ok().map(|(node, stat)| found_node(&node, &stat));
        }
        let handle = dir.volume.name(dir.fd(), name).ok()?;
        self.places.learn(&handle, &dir.handle, name);
        if let Some(node) = self.nodes.get(&handle) {
            let stat = self.stat(&node).ok()?;
            return Some(found_node(&node, &stat));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let object = self.with_descriptors(|| openat(dir.fd(), name, flags, Mode::empty())).ok()?;
        let handle = dir.volume.name(object.as_fd(), c"").ok()?;
        let stat = fstat(&object).ok()?;
        Some(Found { handle, attr: attr(&dir.volume, &stat) })
    }

    fn version_now(&self, dir: &Node) -> Option<Version> {
        self.stat(dir).ok().map(|stat| version(dir, &stat))
    }
}

impl Show<'_> {
    /// Shows one entry.
    fn entry(&mut self, batch: &Batch, item: &Item, node: Option<Found<Disk>>) -> ControlFlow<()> {
        let Ok(name) = Name::new(batch.name(item).to_bytes()) else {
            return ControlFlow::Continue(());
        };
        let fileid = node.map_or(item.fileid, |node| node.attr.fileid);
        let entry = Listing { name, fileid, cookie: item.cookie, node };
        (self.visit)(&entry)?;
        self.cookie = item.cookie;
        ControlFlow::Continue(())
    }
}

fn version(dir: &Node, stat: &Stat) -> Version {
    (ctime(stat), dir.barrier.count())
}
