//! Open files and directories, by the number that the kernel sends with each request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use comity_vfs::{Cred, Disk, Handle, OpenId};
use rustix::io::Errno;

use crate::limits::OPENS_MAX;

/// An open file or directory.
#[derive(Debug)]
pub(crate) struct OpenFile {
    /// The kernel's number of the object.
    pub(crate) number: u64,
    /// The object.
    pub(crate) handle: Handle,
    /// The caller that opened it, with whose rights it is read and written.
    pub(crate) cred: Cred<Disk>,
    /// The open at the server, if there is one.
    pub(crate) opened: Option<OpenId>,
    /// True if the file was written since the last flush.
    pub(crate) unflushed: AtomicBool,
    /// The end of a directory, if its last listing came to it.
    pub(crate) end: ListingEnd,
}

/// The offset after the last entry of an open directory. The kernel asks for more there, to find
/// that there is nothing. Whether entries that are made meanwhile are shown before the next
/// rewinddir(3) is unspecified by POSIX, so that no call is made for the answer.
#[derive(Debug, Default)]
pub(crate) struct ListingEnd(AtomicU64);

impl ListingEnd {
    const UNKNOWN: u64 = 0;

    /// Returns whether the listing ended at this offset. Otherwise the end is not known any more:
    /// the directory is read again.
    pub(crate) fn is_at(&self, offset: u64) -> bool {
        if offset != Self::UNKNOWN && self.0.load(Ordering::Acquire) == offset {
            return true;
        }
        self.0.store(Self::UNKNOWN, Ordering::Release);
        false
    }

    /// Notes that there is nothing after this offset.
    pub(crate) fn note(&self, offset: u64) {
        self.0.store(offset, Ordering::Release);
    }
}

/// All open files and directories.
#[derive(Debug, Default)]
pub(crate) struct Opens {
    files: RwLock<HashMap<u64, Arc<OpenFile>>>,
    next: AtomicU64,
}

impl Opens {
    /// Adds an open; returns its number.
    ///
    /// # Errors
    /// [`Errno::NFILE`] if there are too many.
    pub(crate) fn insert(&self, file: OpenFile) -> Result<u64, Errno> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut files = self.files.write().unwrap_or_else(PoisonError::into_inner);
        if files.len() >= OPENS_MAX {
            return Err(Errno::NFILE);
        }
        files.insert(number, Arc::new(file));
        Ok(number)
    }

    /// Returns the open with this number.
    ///
    /// # Errors
    /// [`Errno::BADF`] if there is none.
    pub(crate) fn get(&self, number: u64) -> Result<Arc<OpenFile>, Errno> {
        let files = self.files.read().unwrap_or_else(PoisonError::into_inner);
        files.get(&number).cloned().ok_or(Errno::BADF)
    }

    /// Removes an open.
    pub(crate) fn remove(&self, number: u64) -> Option<Arc<OpenFile>> {
        self.files.write().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }

    /// Returns whether nothing is open.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}
