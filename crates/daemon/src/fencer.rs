//! Has data servers refuse the handles of layouts that ended without their clients' doing.

use std::sync::Arc;

use comity_export::Exports;
use comity_nfs4::Memory;
use comity_vfs::FileKey;

use crate::silent_files::SilentFiles;

/// The part of the server that raises fences.
pub(crate) struct Fencer {
    memory: Memory,
    exports: Arc<Exports>,
    silent: SilentFiles,
}

impl Fencer {
    pub(crate) fn new(memory: &Memory, exports: &Arc<Exports>) -> Self {
        Self {
            memory: memory.clone(),
            exports: Arc::clone(exports),
            silent: SilentFiles::default(),
        }
    }

    /// Raises all fences that are due. Those of data servers that do not answer are due again at
    /// the next pass.
    pub(crate) fn pass(&mut self) {
        let due: Vec<FileKey> = std::iter::from_fn(|| self.memory.engine.poll_fence()).collect();
        due.iter().for_each(|file| self.raise(file));
    }

    fn raise(&mut self, file: &FileKey) {
        let fenced = self.exports.current().fence(file);
        let meaning = "a data server does not take the end of a layout; changes of the size and \
            the rights of the file wait until it does";
        self.silent.note(file, (&fenced, &self.exports), meaning);
        self.memory.engine.fenced(self.memory.clock.now(), file, fenced.is_ok());
    }
}
