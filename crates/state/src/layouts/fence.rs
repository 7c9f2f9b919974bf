//! Fences: data servers must refuse the handles of a layout that ended without its client's doing.

use std::time::Duration;

use crate::sync::atomic::Ordering;
use crate::{Engine, FileKey};

impl Engine {
    /// Returns a file whose data servers must refuse all handles of layouts that were given out so
    /// far. The shell reports by [`Engine::fenced`] whether they do. Meanwhile no layout of the
    /// file is given out, and changes that contradict layouts wait.
    #[must_use]
    pub fn poll_fence(&self) -> Option<FileKey> {
        self.fences.pop()
    }

    /// Notes whether the data servers of a file refuse the handles of its earlier layouts now. If
    /// they do not, [`Engine::poll_fence`] returns the file again.
    pub fn fenced(&self, now: Duration, key: &FileKey, done: bool) {
        if !done {
            return self.fences.push(*key);
        }
        let Some(file) = self.files.get(key) else { return };
        if file.state().layouts.end_fence() {
            self.files.layouts.fetch_sub(1, Ordering::SeqCst);
        }
        if file.state().layouts.queue_size() {
            self.sizes.push(file.key);
        }
        self.files.let_go(now, &file);
    }
}
