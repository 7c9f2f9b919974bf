use std::ffi::CStr;
use std::fs::File;
use std::ops::ControlFlow;

use comity_vfs::Node as Found;
use comity_vfs::{Attr, Cred, Disk, Handle, Listed, Listing, Name, Result, Status};
use rustix::fs::{Mode, OFlags, fstat, openat};

use super::Passthrough;
use super::attr::{attr, ctime};
use super::cursor::Cursor;
use super::lookup::found_node;
use super::node::Node;
use super::verdict::Rights;

/// What is called with each entry.
pub(super) type Visit<'a> = &'a mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>;

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
        let mut cursor = self.cursor(&dir, cookie)?;
        cursor.seek(cookie, (ctime(&stat), dir.barrier.count()))?;
        self.identity.caller(cred)?;
        self.list(&dir, &mut cursor, nodes, visit)?;
        self.cursors.put(cursor);
        Ok(attr(&dir.volume, &stat))
    }

    fn cursor(&self, dir: &Node, cookie: u64) -> Result<Cursor> {
        if let Some(cursor) = self.cursors.take(&dir.handle, cookie) {
            return Ok(cursor);
        }
        let opened = self.open_data(dir, OFlags::RDONLY | OFlags::DIRECTORY)?;
        Ok(Cursor::new(dir.handle, File::from(opened)))
    }

    fn list(&self, dir: &Node, cursor: &mut Cursor, nodes: bool, visit: Visit<'_>) -> Result<()> {
        loop {
            let (batch, items) = cursor.rest()?;
            if items.is_empty() {
                return Ok(());
            }
            let mut shown = 0;
            let mut flow = ControlFlow::Continue(());
            for item in items {
                let name = batch.name(item);
                let Ok(shape) = Name::new(name.to_bytes()) else {
                    shown += 1;
                    continue;
                };
                let node = if nodes { self.entry(dir, name) } else { None };
                let fileid = node.map_or(item.fileid, |node| node.attr.fileid);
                let entry = Listing { name: shape, fileid, cookie: item.cookie, node };
                flow = visit(&entry);
                if flow.is_break() {
                    break;
                }
                shown += 1;
            }
            cursor.advance(shown);
            if flow.is_break() {
                return Ok(());
            }
        }
    }

    /// The object of a name, if it is still there: never the attributes of one with the handle of
    /// another.
    fn entry(&self, dir: &Node, name: &CStr) -> Option<Found<Disk>> {
        let handle = dir.volume.name(dir.fd(), name).ok()?;
        self.places.learn(&handle, &dir.handle, name);
        if let Some(node) = self.nodes.get(&handle) {
            let stat = self.stat(&node).ok()?;
            return Some(found_node(&node, &stat));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let object = self.with_descriptors(|| openat(dir.fd(), name, flags, Mode::empty())).ok()?;
        let handle = dir.volume.name(std::os::fd::AsFd::as_fd(&object), c"").ok()?;
        let stat = fstat(&object).ok()?;
        Some(Found { handle, attr: attr(&dir.volume, &stat) })
    }
}
