//! Asks data servers how far clients have written to files, when the clients may not have said so.

use std::sync::Arc;

use comity_export::Exports;
use comity_nfs4::Memory;
use comity_vfs::FileKey;

use crate::limits::SIZES_AT_ONCE;
use crate::silent_files::SilentFiles;

/// The part of the server that asks for sizes. It has a thread of its own, because data servers may
/// be slow.
pub(crate) struct SizeWatch {
    memory: Memory,
    exports: Arc<Exports>,
    silent: SilentFiles,
}

impl SizeWatch {
    pub(crate) fn new(memory: &Memory, exports: &Arc<Exports>) -> Self {
        Self {
            memory: memory.clone(),
            exports: Arc::clone(exports),
            silent: SilentFiles::default(),
        }
    }

    /// Asks for all sizes that are due. Those of data servers that do not answer are due again at
    /// the next pass. Until then the files can be used with the sizes that are known.
    pub(crate) fn pass(&mut self) {
        let engine = Arc::clone(&self.memory.engine);
        let due = std::iter::from_fn(|| engine.poll_size(self.memory.clock.now()));
        let due: Vec<FileKey> = due.take(SIZES_AT_ONCE).collect();
        due.iter().for_each(|file| self.ask(file));
        // Stable storage forgets files whose sizes are known. A failure to store is logged.
        let _ = engine.is_settled(self.memory.settle.as_deref());
    }

    fn ask(&mut self, file: &FileKey) {
        let learned = self.exports.current().learn_size(file);
        let meaning = "a data server does not tell how far clients have written to a file; the \
            file keeps its size until it does";
        self.silent.note(file, (&learned, &self.exports), meaning);
        self.memory.engine.size_asked(file, learned.is_ok());
    }
}
