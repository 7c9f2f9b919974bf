//! Recalls of what cannot move: layouts name data servers of this server, and notifications of a
//! directory are numbered by this server.

use std::sync::Arc;
use std::time::Duration;

use crate::file::File;
use crate::{DelegationKind, Engine, Share};

impl Engine {
    /// Begins to recall all layouts and all delegations of directories of a volume. The shell calls
    /// it before [`Engine::export_volume`], which refuses while there are any.
    pub fn recall_volume(&self, now: Duration, volume: u64) {
        for file in self.files_of(volume) {
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

    /// Returns all files of a volume, by their handles.
    pub(super) fn files_of(&self, volume: u64) -> Vec<Arc<File>> {
        let mut files = self.files.all();
        files.retain(|file| file.key.volume == volume);
        files.sort_unstable_by(|one, other| one.key.handle.bytes().cmp(other.key.handle.bytes()));
        files
    }
}
