use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use comity_vfs::{Handle, Result, Status};
use rustix::fs::{Mode, OFlags, Stat, openat};

use super::node::Node;
use super::path_cache::KnownPath;
use crate::blocking::blocking;
use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::directory::readdir_cursor::{Batch, read_batch};
use crate::passthrough::limits::{DEPTH_MAX, LISTING_BYTES, SEARCH_ENTRIES_MAX};
use crate::passthrough::mounts::mount::Mount;

impl Passthrough {
    /// Finds the object of a handle that the kernel does not open for this process: at the place
    /// where it was last seen, or else by a search of the whole tree. So a handle survives renames
    /// by others and restarts.
    pub(crate) fn search(&self, mount: &Arc<Mount>, handle: &Handle) -> Result<(Arc<Node>, Stat)> {
        if self.paths.is_gone(handle) {
            return Err(Status::Stale);
        }
        self.identity.server()?;
        match self.at_last_place(mount, handle) {
            Err(Status::Stale) => blocking(|| self.search_tree(mount, handle)),
            found => found,
        }
    }

    fn at_last_place(&self, mount: &Arc<Mount>, handle: &Handle) -> Result<(Arc<Node>, Stat)> {
        let (mut node, steps) = self.way_to(mount, handle)?;
        for (handle, place) in steps.iter().rev() {
            node = self.step(mount, &node, handle, place)?;
        }
        let stat = self.stat(&node)?;
        Ok((node, stat))
    }

    /// Returns the nearest directory above an object whose node is in use, and the steps from there
    /// down to the object, in reverse order.
    fn way_to(&self, mount: &Arc<Mount>, handle: &Handle) -> Result<Way> {
        let (mut here, mut steps) = (*handle, Vec::new());
        while steps.len() < DEPTH_MAX {
            if let Some(node) = self.nodes.get(&here) {
                return Ok((node, steps));
            }
            if here == mount.root {
                let top = mount.top.try_clone().map_err(|_| Status::Delay)?;
                return Ok((self.adopt(mount, here, top)?.0, steps));
            }
            let place = self.paths.of(&here).ok_or(Status::Stale)?;
            let above = place.dir;
            steps.push((here, place));
            here = above;
        }
        Err(Status::Stale)
    }

    /// Opens the object at a place, if it is that of `handle`.
    fn step(
        &self,
        mount: &Arc<Mount>,
        dir: &Node,
        handle: &Handle,
        place: &KnownPath,
    ) -> Result<Arc<Node>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = self.with_descriptors(|| openat(dir.fd(), &*place.name, flags, Mode::empty()));
        let object = match opened {
            Err(Status::NoEnt | Status::NotDir) => return Err(Status::Stale),
            opened => opened?,
        };
        match mount.name(object.as_fd(), c"") {
            Ok(found) if found == *handle => Ok(self.adopt(mount, found, object)?.0),
            Ok(_) => Err(Status::Stale),
            Err(errno) => Err(status(errno)),
        }
    }

    fn search_tree(&self, mount: &Arc<Mount>, handle: &Handle) -> Result<(Arc<Node>, Stat)> {
        let Some(_search) = self.paths.begin_search() else { return Err(Status::Delay) };
        tracing::debug!(?handle, "searching the tree for an object");
        let mut waiting = VecDeque::from([mount.root]);
        let mut seen = 0;
        while let Some(dir) = waiting.pop_front() {
            // A directory that cannot be opened or read cannot be shown to clients either.
            let Ok((dir, _)) = self.at_last_place(mount, &dir) else { continue };
            if self.search_directory(&dir, handle, &mut waiting, &mut seen).is_ok_and(|found| found)
            {
                return self.at_last_place(mount, handle);
            }
            if seen > SEARCH_ENTRIES_MAX {
                tracing::warn!(
                    seen,
                    "the tree is too big to search for an object that others have moved"
                );
                return Err(Status::Stale);
            }
        }
        self.paths.mark_gone(handle);
        Err(Status::Stale)
    }

    /// Learns the paths of all entries of a directory; returns whether `wanted` is among them.
    fn search_directory(
        &self,
        dir: &Node,
        wanted: &Handle,
        waiting: &mut VecDeque<Handle>,
        seen: &mut usize,
    ) -> Result<bool> {
        let file = File::from(self.open_data(dir, OFlags::RDONLY | OFlags::DIRECTORY)?);
        let (mut batch, mut room) = (Batch::default(), Vec::with_capacity(LISTING_BYTES));
        loop {
            read_batch(&file, &mut batch, &mut room)?;
            if batch.items.is_empty() {
                return Ok(false);
            }
            *seen += batch.items.len();
            for item in &batch.items {
                let Ok(handle) = dir.mount.name(dir.fd(), batch.name(item)) else { continue };
                self.paths.learn(&handle, &dir.handle, batch.name(item));
                if handle == *wanted {
                    return Ok(true);
                }
                if item.maybe_directory {
                    waiting.push_back(handle);
                }
            }
        }
    }
}

type Way = (Arc<Node>, Vec<(Handle, KnownPath)>);
