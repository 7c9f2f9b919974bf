use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use super::volume::Volume;

/// The mounted file systems of the tree that is served.
#[derive(Debug)]
pub(super) struct Volumes {
    top: Arc<Volume>,
    others: RwLock<HashMap<u32, Arc<Volume>>>,
}

impl Volumes {
    /// Those of a tree whose root is in `top`.
    pub(super) fn new(top: Volume) -> Self {
        Self { top: Arc::new(top), others: RwLock::default() }
    }

    /// The one that holds the root.
    pub(super) fn top(&self) -> &Arc<Volume> {
        &self.top
    }

    /// The one of this number.
    pub(super) fn get(&self, id: u32) -> Option<Arc<Volume>> {
        if self.top.id == id {
            return Some(Arc::clone(&self.top));
        }
        self.others.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }
}
