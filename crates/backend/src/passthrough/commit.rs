use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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
        let file = self.data_for_sync(&node)?;
        node.barrier.wait(|extent| {
            sync(&node, file.as_deref(), extent).inspect_err(|failure| {
                tracing::error!(%failure, handle = ?node.handle, MAY_BE_LOST);
                self.failures.keep(&node.handle, *failure);
            })
        })?;
        node.end_writing();
        let stat = self.stat(&node)?;
        Ok(attr(&node.volume, &stat))
    }

    /// What a barrier is asked for by. It needs no right to write, so that an immutable file and a
    /// directory have one too; links and devices have none.
    fn data_for_sync(&self, node: &Node) -> Result<Option<Arc<File>>> {
        match node.kind {
            FileType::Regular | FileType::Directory => self.data(node, Use::Read).map(Some),
            _ => Ok(None),
        }
    }
}

/// What is logged when a barrier fails.
const MAY_BE_LOST: &str = "a barrier failed: what was written may be lost";

fn sync(node: &Node, file: Option<&File>, extent: Extent) -> Result<()> {
    let outcome = match (file, extent) {
        (Some(file), Extent::Data) if node.kind == FileType::Regular => {
            blocking(|| retry_on_intr(|| fdatasync(file)))
        }
        (Some(file), _) => blocking(|| retry_on_intr(|| fsync(file))),
        (None, _) => blocking(|| retry_on_intr(|| syncfs(node.volume.mount()))),
    };
    outcome.map_err(status)
}
