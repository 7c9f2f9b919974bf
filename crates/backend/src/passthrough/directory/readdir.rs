use std::ffi::CStr;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::sync::Arc;

use comity_vfs::Node as Found;
use comity_vfs::{Attr, Cred, Disk, Handle, Listed, Listing, Name, Result, Status};
use rustix::fs::{AtFlags, Mode, OFlags, Stat, fstat, openat, statat};

use super::lookup::found_node;
use super::readdir_cursor::{Batch, Cursor, Item, Version};
use super::snapshot::{Handles, Remembered, Snapshot};
use super::thread_cwd::ThreadCwd;
use crate::blocking::blocking;
use crate::passthrough::Passthrough;
use crate::passthrough::access::access_cache::{Rights, is_past};
use crate::passthrough::attributes::attr::{attr, ctime};
use crate::passthrough::handles::node::Node;
use crate::passthrough::limits::{LISTED_INLINE_MAX, SNAPSHOT_STEP};

/// A function that is called with each entry and may stop the listing.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()>;

/// A listing under way.
struct Show<'a> {
    dir: &'a Node,
    /// True if entries are shown with their objects.
    nodes: bool,
    visit: Visit<'a>,
    /// The cookie of the entry after which the listing continues.
    cookie: u64,
    /// The number of entries that may still be shown.
    left: usize,
    is_over: bool,
}

impl Passthrough {
    /// See [`comity_vfs::Fs::readdir`]. A long listing passes its event loop to another thread,
    /// because the caller may skip any number of entries before it takes one.
    pub(crate) fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        cookie: u64,
        wanted: Listed,
        visit: Visit<'_>,
    ) -> Result<Attr<Disk>> {
        let (attr, rest) =
            self.list(cred, (dir, cookie), wanted, (LISTED_INLINE_MAX, &mut *visit))?;
        let Some(cookie) = rest else { return Ok(attr) };
        let rest = || self.list(cred, (dir, cookie), wanted, (usize::MAX, visit));
        blocking(rest).map(|(attr, _)| attr)
    }

    /// Lists at most `left` entries; returns the cookie after which there are more of them.
    fn list(
        &self,
        cred: &Cred<Disk>,
        (dir, cookie): (&Handle, u64),
        wanted: Listed,
        (left, visit): (usize, Visit<'_>),
    ) -> Result<(Attr<Disk>, Option<u64>)> {
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
        let mut show = Show { dir: &dir, nodes, visit, cookie, left, is_over: false };
        self.identity.caller(cred)?;
        let done =
            snapshot.is_some_and(|snapshot| self.show_snapshot(&mut show, &snapshot, version));
        if !done {
            self.show_cursor(cred, &mut show, version)?;
        }
        Ok((attr(&dir.mount, &stat), show.is_over.then_some(show.cookie)))
    }

    /// Returns all entries of a directory, unless it changed a moment ago or is too big.
    fn snapshot(&self, dir: &Node, cookie: u64, version: Version) -> Result<Option<Arc<Snapshot>>> {
        match self.snapshots.of(&dir.handle, version) {
            Remembered::Whole(snapshot) => {
                let renewed = if cookie == 0 { snapshot.renewed() } else { None };
                let kept = renewed.and_then(|renewed| self.snapshots.keep(dir.handle, renewed));
                return Ok(Some(kept.unwrap_or(snapshot)));
            }
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
        self.forget_removed(&dir.handle);
        Ok(self.snapshots.keep(dir.handle, snapshot))
    }

    /// Closes the objects of a directory that others have removed since it was last listed.
    fn forget_removed(&self, dir: &Handle) {
        let Some(last) = self.snapshots.last(dir) else { return };
        for (handle, object) in last.open_objects() {
            if matches!(object.stat(), Err(Status::Stale)) {
                self.nodes.remove(handle);
            }
        }
    }

    /// Shows entries of a snapshot; returns whether the listing is done.
    fn show_snapshot(&self, show: &mut Show<'_>, snapshot: &Snapshot, version: Version) -> bool {
        let Some(mut position) = snapshot.position(show.cookie) else { return false };
        if position == 0 {
            snapshot.begin(self.nodes.pass(snapshot.len()));
        }
        // An entry on which a file system is mounted is shown with the root of that file system.
        let open = show.nodes && !self.mounts.is_covered(&show.dir.handle);
        let mut within = None;
        loop {
            if open {
                match self.show_open(show, snapshot, position) {
                    ControlFlow::Continue(next) => position = next,
                    ControlFlow::Break(()) => return true,
                }
            }
            if snapshot.step(position).is_empty() {
                return true;
            }
            let within = within.get_or_insert_with(|| ThreadCwd::enter(show.dir.fd()));
            match self.show_step(show, within, (snapshot, version), position) {
                Some(ControlFlow::Continue(next)) => position = next,
                Some(ControlFlow::Break(())) => return true,
                None => return false,
            }
        }
    }

    /// Shows entries from `position` on as long as their objects are open; returns the position of
    /// the first one whose object is closed. The names were valid when this listing read the
    /// directory, and handle and attributes always belong to the same object.
    fn show_open(
        &self,
        show: &mut Show<'_>,
        snapshot: &Snapshot,
        mut position: usize,
    ) -> ControlFlow<(), usize> {
        while let Some((item, handle, object)) = snapshot.open_entry(position) {
            object.touch();
            let stat = object.stat().inspect_err(|_| self.nodes.remove(handle)).ok();
            let attr = stat.map(|stat| attr(&show.dir.mount, &stat));
            let node = attr.map(|attr| Found { handle: *handle, attr });
            show.entry(&snapshot.batch, item, node)?;
            position += 1;
        }
        ControlFlow::Continue(position)
    }

    /// Shows a few entries from `position` on by their names; returns the position after them. The
    /// entries were valid while the directory had the snapshot's version, so that no name can have
    /// another object. Returns `None` if the directory has another version now.
    fn show_step(
        &self,
        show: &mut Show<'_>,
        within: &ThreadCwd<'_>,
        (snapshot, version): (&Snapshot, Version),
        position: usize,
    ) -> Option<ControlFlow<(), usize>> {
        let step = snapshot.step(position);
        let mut nodes = [None; SNAPSHOT_STEP];
        if show.nodes {
            let handles = self.handles(show.dir, within, snapshot, position);
            let handles = handles.iter().skip(position % SNAPSHOT_STEP);
            for (index, (handle, node)) in handles.zip(&mut nodes).take(step.len()).enumerate() {
                *node =
                    self.remembered_entry((show.dir, within), snapshot, position + index, *handle);
            }
            if self.version_now(show.dir) != Some(version) {
                return None;
            }
        }
        for (item, node) in step.iter().zip(nodes) {
            if show.entry(&snapshot.batch, item, node).is_break() {
                return Some(ControlFlow::Break(()));
            }
        }
        Some(ControlFlow::Continue(position + step.len()))
    }

    /// Returns the handles of the entries of a snapshot that form one step with the entry at
    /// `position`.
    fn handles(
        &self,
        dir: &Node,
        within: &ThreadCwd<'_>,
        snapshot: &Snapshot,
        position: usize,
    ) -> Handles {
        snapshot.handles(position, |item| {
            let name = snapshot.batch.name(item);
            let handle = dir.mount.name(within.place(), name).ok()?;
            self.paths.learn(&handle, &dir.handle, name);
            Some(handle)
        })
    }

    /// Returns the object of an entry of a snapshot by its name. A caller that lists a directory
    /// again will probably do so once more; then objects are put into the cache if there is room.
    fn remembered_entry(
        &self,
        (dir, within): (&Node, &ThreadCwd<'_>),
        snapshot: &Snapshot,
        position: usize,
        handle: Option<Handle>,
    ) -> Option<Found<Disk>> {
        let name = snapshot.batch.name(snapshot.step(position).first()?);
        if let Some(root) = self.mounts.mounted_at(&dir.handle, name) {
            return self.look(&root).ok().map(|(node, stat)| found_node(&node, &stat));
        }
        let handle = handle?;
        let Some(interval) = snapshot.interval() else {
            return entry_by_name(dir, within, name, handle);
        };
        let in_use = match self.nodes.get(&handle) {
            Some(node) => node.stat().ok().map(|stat| (node, stat)),
            None if self.nodes.makes_room_for_listed(interval) => {
                self.open_entry(dir, name).ok().filter(|(node, _)| node.handle == handle)
            }
            None => return entry_by_name(dir, within, name, handle),
        };
        let (node, stat) = in_use?;
        snapshot.keep(position, node.object());
        Some(found_node(&node, &stat))
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

    /// Returns the object that a name has now, if there is one. Handle and attributes are always of
    /// the same object.
    fn present_entry(&self, show: &Show<'_>, name: &CStr) -> Option<Found<Disk>> {
        if !show.nodes {
            return None;
        }
        let dir = show.dir;
        if let Some(root) = self.mounts.mounted_at(&dir.handle, name) {
            return self.look(&root).ok().map(|(node, stat)| found_node(&node, &stat));
        }
        let handle = dir.mount.name(dir.fd(), name).ok()?;
        self.paths.learn(&handle, &dir.handle, name);
        if let Some(node) = self.nodes.get(&handle) {
            let stat = self.stat(&node).ok()?;
            return Some(found_node(&node, &stat));
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let object = self.with_descriptors(|| openat(dir.fd(), name, flags, Mode::empty())).ok()?;
        let handle = dir.mount.name(object.as_fd(), c"").ok()?;
        let stat = fstat(&object).ok()?;
        Some(Found { handle, attr: attr(&dir.mount, &stat) })
    }

    fn version_now(&self, dir: &Node) -> Option<Version> {
        self.stat(dir).ok().map(|stat| version(dir, &stat))
    }
}

impl Show<'_> {
    /// Shows one entry.
    fn entry(&mut self, batch: &Batch, item: &Item, node: Option<Found<Disk>>) -> ControlFlow<()> {
        let Ok(name) = Name::new(batch.name_bytes(item)) else {
            return ControlFlow::Continue(());
        };
        if self.left == 0 {
            self.is_over = true;
            return ControlFlow::Break(());
        }
        self.left -= 1;
        let fileid = node.map_or(item.fileid, |node| node.attr.fileid);
        let entry = Listing { name, fileid, cookie: item.cookie, node };
        (self.visit)(&entry)?;
        self.cookie = item.cookie;
        ControlFlow::Continue(())
    }
}

/// Returns the object of a name whose handle is known. Only the directory's version shows whether
/// the name still has that object.
fn entry_by_name(
    dir: &Node,
    within: &ThreadCwd<'_>,
    name: &CStr,
    handle: Handle,
) -> Option<Found<Disk>> {
    let stat = statat(within.place(), name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some(Found { handle, attr: attr(&dir.mount, &stat) })
}

fn version(dir: &Node, stat: &Stat) -> Version {
    (ctime(stat), dir.barrier.count())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use comity_vfs::{Fs, Gid, Uid};

    use super::*;
    use crate::blocking::watch;
    use crate::passthrough::{Descriptors, PassthroughOptions};

    const DESCRIPTORS: usize = 600;

    fn served() -> (tempfile::TempDir, Passthrough) {
        let folder = tempfile::tempdir().unwrap();
        let descriptors = Some(Descriptors::at_most(DESCRIPTORS));
        let options = PassthroughOptions { descriptors, ..Default::default() };
        let served = Passthrough::open(folder.path(), options).unwrap();
        (folder, served)
    }

    /// A directory with `files` files in it.
    fn directory(served: &(tempfile::TempDir, Passthrough), name: &str, files: usize) -> Handle {
        let path = served.0.path().join(name);
        fs::create_dir(&path).unwrap();
        (0..files).for_each(|file| fs::write(path.join(format!("f{file}")), b"").unwrap());
        let name = Name::new(name.as_bytes()).unwrap();
        served.1.lookup(&cred(), &served.1.root(), name).unwrap().node.handle
    }

    fn cred() -> Cred<Disk> {
        Cred::new(Uid::new(0), Gid::new(0))
    }

    fn handles(served: &Passthrough, dir: &Handle) -> Vec<Handle> {
        let mut handles = Vec::new();
        let visit = &mut |entry: &Listing<'_, Disk>| {
            handles.push(entry.node.unwrap().handle);
            ControlFlow::Continue(())
        };
        Fs::readdir(served, &cred(), dir, 0, Listed::Nodes, visit).unwrap();
        handles
    }

    fn list(served: &Passthrough, dir: &Handle, times: usize) {
        (0..times).for_each(|_| drop(handles(served, dir)));
    }

    fn ask(served: &Passthrough, handles: &[Handle]) {
        for handle in handles {
            served.getattr(handle).unwrap();
        }
    }

    fn in_use(served: &Passthrough, handles: &[Handle]) -> usize {
        handles.iter().filter(|handle| served.nodes.get(handle).is_some()).count()
    }

    /// The number of entries of a directory that are shown without a search of any map.
    fn shown_at_once(served: &Passthrough, dir: &Handle) -> usize {
        served.snapshots.last(dir).unwrap().open_objects().count()
    }

    #[test]
    fn files_that_were_not_used_for_long_make_room_for_listed_ones() {
        let served = served();
        let [old, busy, listed] = [("old", 1_000), ("busy", 50), ("listed", 100)]
            .map(|(name, files)| directory(&served, name, files));
        std::thread::sleep(crate::passthrough::limits::TIME_GRAIN * 2);
        let served = &served.1;
        let [old, busy] = [old, busy].map(|dir| handles(served, &dir));
        for _ in 0..2 {
            (0..2).for_each(|_| ask(served, &old));
            (0..4).for_each(|_| ask(served, &busy));
            let (full, before) = (served.nodes.ledger().descriptors.open(), in_use(served, &busy));
            for _ in 0..20 {
                list(served, &listed, 1);
                ask(served, &busy);
            }
            // By chance, a shard may have only objects in use.
            let (listed, busy) = (shown_at_once(served, &listed), in_use(served, &busy));
            assert!(listed >= 90 && busy >= before - 2, "{listed}, {busy} of {before}");
            assert!(served.nodes.ledger().descriptors.open() <= full.max(DESCRIPTORS));
        }
        served.release_identity().unwrap();
    }

    #[test]
    fn a_file_in_use_stays_open_while_others_walk_through_too_many_files() {
        let served = served();
        let dirs: Vec<_> = (0..10).map(|dir| directory(&served, &format!("d{dir}"), 100)).collect();
        let busy = directory(&served, "busy", 300);
        std::thread::sleep(crate::passthrough::limits::TIME_GRAIN * 2);
        let served = &served.1;
        let busy = handles(served, &busy);
        ask(served, &busy);
        for _ in 0..5 {
            dirs.iter().for_each(|dir| list(served, dir, 1));
        }
        assert_eq!(in_use(served, &busy), 300);
        served.release_identity().unwrap();
    }

    #[test]
    fn a_long_listing_leaves_its_event_loop_once_and_shows_every_entry_once() {
        watch::install();
        let served = served();
        let thread = std::thread::current().id();
        for (name, files, leaves) in [
            ("short", LISTED_INLINE_MAX, 0),
            ("long", LISTED_INLINE_MAX + 1, 1),
            ("very long", 3 * LISTED_INLINE_MAX, 1),
        ] {
            let dir = directory(&served, name, files);
            let before = watch::sleeps_of(thread);
            let mut found = handles(&served.1, &dir);
            assert_eq!(watch::sleeps_of(thread), before + leaves, "{name}");
            found.sort_unstable_by(|one, other| one.bytes().cmp(other.bytes()));
            found.dedup();
            assert_eq!(found.len(), files, "{name}");
        }
        served.1.release_identity().unwrap();
    }
}
