//! The change attribute that callers are shown.
//!
//! A caller compares it to learn whether others have changed a file. So it must change with each
//! answered write, even while the data is unsent, and must not change again when the data is sent.

use comity_vfs::{Attr, Disk, Handle, Time};
use quick_cache::sync::Cache as QuickCache;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Cache;
use crate::limits::ATTRIBUTES_MAX;

/// The change attributes that are shown instead of those of the file system below.
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

    /// Notes a write that was answered before its data were sent. `below` is the change attribute
    /// of the file in the file system below, which the write does not change yet.
    pub(super) fn written(&self, node: &Handle, below: u64) {
        let number = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        // The multiplication makes it unlikely that a counter or clock below reaches the same
        // value.
        let shown = below ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.known.insert(*node, Mark { below, shown });
    }

    /// Notes that data written here was sent, and that no other client has changed the file.
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

/// The unsent data of a file, as it affects the attributes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waits {
    end: u64,
    bytes: u64,
    written: Time,
}

impl Cache {
    /// Returns the unsent data of a file. Must be called before the attributes are fetched: data
    /// that is sent in between is then counted in at least one of the two.
    pub(super) fn waits(&self, node: &Handle) -> Option<Waits> {
        let file = self.dirty.get(node)?;
        let state = file.lock();
        let bytes = state.waiting.bytes() + state.sending.bytes();
        (bytes > 0).then(|| Waits { end: state.end(), bytes, written: state.written })
    }

    /// Returns attributes as callers see them, with unsent data applied.
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
                // The data may overwrite existing data: the exact space is known only once it is
                // sent.
                let (size, used) = (attr.size.max(end), attr.used.saturating_add(bytes));
                let (mtime, ctime) = (attr.mtime.max(written), attr.ctime.max(written));
                Attr { change, size, used, mtime, ctime, ..attr }
            }
        }
    }
}
