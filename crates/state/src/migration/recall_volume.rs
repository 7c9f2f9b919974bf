//! Recalls of what cannot move: layouts name data servers of this server, and notifications of a
//! directory are numbered by this server.

use std::sync::Arc;
use std::time::Duration;

use super::moving_files::MovingFiles;
use crate::file::File;
use crate::{DelegationKind, Engine, Share};

impl Engine {
    /// Begins to recall all layouts and all delegations of directories of files. The shell calls
    /// it before [`Engine::export_volume`], which refuses while there are any.
    pub fn recall_volume(&self, now: Duration, moving: impl Into<MovingFiles>) {
        for file in self.files_of(&moving.into()) {
            self.recall_directory(now, &file);
            // The answer is the same as that of `export_volume`.
            let _ = self.recall_layouts_if(now, None, &file.key, &|| true);
        }
    }

    fn recall_directory(&self, now: Duration, file: &Arc<File>) {
        let mut on_file = file.state();
        if on_file.delegations.strongest() == Some(DelegationKind::Directory) {
            self.recall(now, file, &mut on_file, (None, Share::access(Share::BOTH)));
        }
    }

    /// Returns all of these files that have state, by their handles.
    pub(super) fn files_of(&self, moving: &MovingFiles) -> Vec<Arc<File>> {
        let mut files = self.files.all();
        files.retain(|file| moving.has(&file.key));
        files.sort_unstable_by(|one, other| one.key.handle.bytes().cmp(other.key.handle.bytes()));
        files
    }
}
