//! Files whose data servers do not all answer: the log names each once.

use std::collections::HashSet;

use comity_export::Exports;
use comity_vfs::{FileKey, Result};

/// Files for which work at data servers has failed so far, and is done again later.
#[derive(Default)]
pub(crate) struct SilentFiles(HashSet<FileKey>);

impl SilentFiles {
    /// Notes how work on a file has ended. The first failure is logged with what it means.
    pub(crate) fn note(
        &mut self,
        file: &FileKey,
        (ended, exports): (&Result<()>, &Exports),
        meaning: &str,
    ) {
        match ended {
            Ok(()) => drop(self.0.remove(file)),
            Err(status) if self.0.insert(*file) => {
                let fileid = exports.current().locate(file).and_then(|(_, fileid)| fileid);
                tracing::warn!(%status, fileid, "{meaning}");
            }
            Err(_) => {}
        }
    }
}
