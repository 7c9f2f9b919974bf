use std::fs::File;
use std::sync::Arc;
use std::time::Instant;

use comity_vfs::{Attr, Disk, FileType, Handle, Result, Status};
use rustix::fs::{fdatasync, fsync, syncfs};
use rustix::io::retry_on_intr;

use super::barrier::Extent;
use crate::blocking::blocking;
use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::attributes::attr::attr;
use crate::passthrough::handles::node::{Node, Use};
use crate::passthrough::mounts::mount::{Mount, volume_id};

impl Passthrough {
    /// See [`comity_vfs::Fs::commit`].
    pub(crate) fn commit(&self, handle: &Handle) -> Result<Option<Attr<Disk>>> {
        let mount = self.mount(volume_id(handle)?)?;
        let node = match self.node(handle) {
            Err(Status::Stale) => return self.commit_volume(&mount, handle),
            node => node?,
        };
        let file = match self.data_for_sync(&node) {
            Err(Status::Stale) => return self.commit_volume(&mount, handle),
            file => file?,
        };
        node.commit(file.as_deref())?;
        node.end_writing();
        match self.stat(&node) {
            Err(Status::Stale) => self.commit_volume(&mount, handle),
            stat => stat.map(|stat| Some(attr(&node.mount, &stat))),
        }
    }

    /// Commits an object that was removed. Its earlier changes count as stable once the removal is
    /// stable; another caller may have made the removal without a barrier.
    fn commit_volume(&self, mount: &Mount, handle: &Handle) -> Result<Option<Attr<Disk>>> {
        self.nodes.ledger().failures.of(handle, Instant::now())?;
        blocking(|| retry_on_intr(|| syncfs(mount.fd()))).map_err(status)?;
        Ok(None)
    }

    /// Returns the descriptor for the barrier: the descriptor for writing, if it is open, since the
    /// kernel has reported every failure to it. Otherwise no right to write is needed, so that an
    /// immutable file and a directory can be synced too; links and devices have no such descriptor.
    fn data_for_sync(&self, node: &Node) -> Result<Option<Arc<File>>> {
        match (node.kind, node.data(Use::Write)) {
            (FileType::Regular, Some(file)) => Ok(Some(file)),
            (FileType::Regular | FileType::Directory, _) => self.data(node, Use::Read).map(Some),
            _ => Ok(None),
        }
    }
}

impl Node {
    /// Puts the object's changes on stable storage.
    fn commit(&self, file: Option<&File>) -> Result<()> {
        self.barrier.wait(|extent| {
            let failures = &self.ledger.failures;
            failures.of(&self.handle, Instant::now())?;
            sync(self, file, extent).inspect_err(|failure| {
                tracing::error!(%failure, handle = ?self.handle, MAY_BE_LOST);
                failures.keep(&self.handle, *failure, Instant::now());
            })
        })
    }

    /// Commits a node before it is evicted, if data was written to it without a barrier: the kernel
    /// reports a failure only to descriptors that are open, or to the next one while the inode is
    /// in memory. A failure is reported by the next barrier.
    pub(crate) fn commit_written(&self) {
        if let Some(file) = self.data(Use::Write) {
            let _ = self.commit(Some(&file));
        }
    }
}

/// The log line of a barrier that failed.
const MAY_BE_LOST: &str = "a barrier failed: written data may be lost";

fn sync(node: &Node, file: Option<&File>, extent: Extent) -> Result<()> {
    let outcome = match (file, extent) {
        (Some(file), Extent::Data) if node.kind == FileType::Regular => {
            blocking(|| retry_on_intr(|| fdatasync(file)))
        }
        (Some(file), _) => blocking(|| retry_on_intr(|| fsync(file))),
        (None, _) => blocking(|| retry_on_intr(|| syncfs(node.mount.fd()))),
    };
    outcome.map_err(status)
}
