use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use comity_vfs::{Attr, Disk, FileType, Handle, Result, Status};
use rustix::fs::{fdatasync, fsync, syncfs};
use rustix::io::retry_on_intr;

use super::Passthrough;
use super::attr::attr;
use super::barrier::Extent;
use super::errno::status;
use super::limits::FAILURES_MAX;
use super::node::{Node, Use};
use crate::blocking::blocking;

/// Objects whose barrier has failed: they outlive the node, since nobody else remembers. What a
/// kernel could not write it forgets, and tells once.
#[derive(Debug, Default)]
pub(super) struct Failures {
    count: AtomicUsize,
    table: Mutex<HashMap<Handle, Status>>,
}

impl Failures {
    fn of(&self, handle: &Handle) -> Result<()> {
        if self.count.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        let table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        table.get(handle).map_or(Ok(()), |failure| Err(*failure))
    }

    fn keep(&self, handle: &Handle, failure: Status) {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if table.len() < FAILURES_MAX {
            table.insert(*handle, failure);
        }
        self.count.store(table.len(), Ordering::Release);
    }
}

impl Passthrough {
    /// See [`comity_vfs::Fs::commit`].
    pub(super) fn commit(&self, node: &Handle) -> Result<Attr<Disk>> {
        let node = self.node(node)?;
        self.failures.of(&node.handle)?;
        node.barrier.wait(|extent| {
            self.sync(&node, extent).inspect_err(|failure| {
                if *failure != Status::Delay {
                    tracing::error!(%failure, handle = ?node.handle, "a barrier failed: data may be lost");
                    self.failures.keep(&node.handle, *failure);
                }
            })
        })?;
        let stat = self.stat(&node)?;
        Ok(attr(&node.volume, &stat))
    }

    fn sync(&self, node: &Node, extent: Extent) -> Result<()> {
        let outcome = match (node.kind, extent) {
            (FileType::Regular, Extent::Data) => {
                let file = self.data_for_sync(node)?;
                blocking(|| retry_on_intr(|| fdatasync(&*file)))
            }
            (FileType::Regular | FileType::Directory, _) => {
                let file = self.data_for_sync(node)?;
                blocking(|| retry_on_intr(|| fsync(&*file)))
            }
            // Links and devices cannot be opened for a barrier of their own.
            _ => blocking(|| retry_on_intr(|| syncfs(node.volume.mount()))),
        };
        outcome.map_err(status)
    }

    /// A barrier needs no right to write: a descriptor for reading does, so that an immutable file
    /// and a directory have one too.
    fn data_for_sync(&self, node: &Node) -> Result<std::sync::Arc<std::fs::File>> {
        self.data(node, Use::Read)
    }
}
