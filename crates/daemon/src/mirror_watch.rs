//! Recalls the layouts of files of which a mirror was found broken: clients would go on using it.

use std::sync::Arc;

use comity_export::Exports;
use comity_nfs4::Memory;
use comity_vfs::FileKey;

/// The part of the server that recalls such layouts.
pub(crate) struct MirrorWatch {
    memory: Memory,
    exports: Arc<Exports>,
}

impl MirrorWatch {
    pub(crate) fn new(memory: &Memory, exports: &Arc<Exports>) -> Self {
        Self { memory: memory.clone(), exports: Arc::clone(exports) }
    }

    /// Recalls all layouts that are due. Those that clients still have are due again at the next
    /// pass.
    pub(crate) fn pass(&self) {
        let plan = self.exports.current();
        let due: Vec<FileKey> = plan.broken_mirrors().collect();
        for file in due {
            let now = self.memory.clock.now();
            let recalled = self.memory.engine.recall_layouts_if(now, None, &file, &|| true);
            plan.layouts_recalled(&file, recalled.is_ok());
        }
    }
}
