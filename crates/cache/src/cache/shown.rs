//! The change attribute that callers are shown.
//!
//! A caller compares it to know whether others have changed a file. So it moves with each write
//! that is answered, though the file system below does not have it yet, and stays when that gets
//! it.

use comity_vfs::{Attr, Disk, Handle, Time};
use quick_cache::sync::Cache as QuickCache;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Cache;
use crate::limits::ATTRIBUTES_MAX;

/// The change attributes that are shown in place of those of the file system below.
pub(super) struct Marks {
    known: QuickCache<Handle, Mark>,
    writes: AtomicU64,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    below: u64,
    shown: u64,
}

impl Marks {
    pub(super) fn new() -> Self {
        Self { known: QuickCache::new(ATTRIBUTES_MAX), writes: AtomicU64::new(0) }
    }

    /// A write was answered while the file system below has this change attribute.
    pub(super) fn written(&self, node: &Handle, below: u64) {
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        // Far from all that a counter or a clock below will say.
        let shown = below ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.known.insert(*node, Mark { below, shown });
    }

    /// The file system below got what was written here, and nothing from others.
    pub(super) fn carried(&self, node: &Handle, before: u64, after: u64) {
        if let Some(mark) = self.known.get(node).filter(|mark| mark.below == before) {
            self.known.insert(*node, Mark { below: after, ..mark });
        }
    }

    fn shown(&self, node: &Handle, below: u64) -> u64 {
        let mark = self.known.get(node).filter(|mark| mark.below == below);
        mark.map_or(below, |mark| mark.shown)
    }
}

/// The effect of data that waits on a file's attributes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    end: u64,
    bytes: u64,
    written: Time,
}

impl Cache {
    /// The data that waits for a file at this moment. To be taken before its attributes are: data
    /// that arrives below in between is in one of them then, else it might be in neither.
    pub(super) fn waits(&self, node: &Handle) -> Option<Waits> {
        let file = self.dirty.get(node)?;
        let state = file.lock();
        let bytes = state.waiting.bytes() + state.sending.bytes();
        (bytes > 0).then(|| Waits { end: state.end(), bytes, written: state.written })
    }

    /// Attributes of the file system below as callers see them.
    pub(super) fn shown(&self, node: &Handle, attr: Attr<Disk>) -> Attr<Disk> {
        self.shown_with(node, attr, self.waits(node))
    }

    pub(super) fn shown_with(
        &self,
        node: &Handle,
        attr: Attr<Disk>,
        waits: Option<Waits>,
    ) -> Attr<Disk> {
        let change = self.marks.shown(node, attr.change);
        match waits {
            None => Attr { change, ..attr },
            Some(Waits { end, bytes, written }) => {
                // It may lie over data that is there: the space is told when it is known.
                let (size, used) = (attr.size.max(end), attr.used.saturating_add(bytes));
                let (mtime, ctime) = (attr.mtime.max(written), attr.ctime.max(written));
                Attr { change, size, used, mtime, ctime, ..attr }
            }
        }
    }
}
