//! The grace periods of single exports.

use std::collections::HashMap;
use std::sync::Arc;

use crate::RecordedClient;
use crate::recovery::Grace;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::table::lock;

/// The exports that are in grace.
#[derive(Default)]
pub(crate) struct ExportGraces {
    /// Their number: while it is zero, the map is not locked.
    count: AtomicUsize,
    map: Mutex<HashMap<u32, Arc<ExportGrace>>>,
}

/// The grace period of an export.
pub(crate) struct ExportGrace {
    pub(crate) grace: Grace,
    /// True once it is due: nothing is reclaimed any more, and nothing else is granted yet.
    pub(crate) is_closing: AtomicBool,
}

impl ExportGraces {
    pub(crate) fn of(&self, export: u32) -> Option<Arc<ExportGrace>> {
        self.has_any().then(|| lock(&self.map).get(&export).cloned()).flatten()
    }

    /// Returns whether there is any. The cost is one atomic load.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    pub(crate) fn all(&self) -> Vec<(u32, Arc<ExportGrace>)> {
        let map = lock(&self.map);
        map.iter().map(|(export, grace)| (*export, Arc::clone(grace))).collect()
    }

    pub(crate) fn insert(&self, export: u32, grace: Grace) {
        let mut map = lock(&self.map);
        map.insert(export, Arc::new(ExportGrace { grace, is_closing: AtomicBool::new(false) }));
        self.count.store(map.len(), Ordering::Release);
    }

    pub(crate) fn remove(&self, export: u32) {
        let mut map = lock(&self.map);
        map.remove(&export);
        self.count.store(map.len(), Ordering::Release);
    }
}

/// A grace period of an export whose time is over, or whose clients have all completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingGrace {
    /// The number of the export.
    pub export: u32,
    /// The clients that have not completed: their right to reclaim state of the export ends.
    pub lost: Vec<RecordedClient>,
}
