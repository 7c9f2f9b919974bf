//! Recovery at the start: data that a crash left in the journal is written, or kept as a conflict.

use std::io;

use comity_vfs::{Handle, ReadInto, Result, Status};

use super::Cache;
use crate::journal::Left;
use crate::write_back::BaseVersion;

impl Cache {
    /// Writes the data in the journal to the file system below. If a file cannot be reached, its
    /// data stays in the queue.
    pub(super) fn recover(&self, left: Vec<Left>) {
        for left in left {
            let node = left.file.handle;
            let file = self.dirty.enter(&node, &left.cred, self.now());
            let record = self.last_record(&left);
            {
                let mut state = file.lock();
                self.dirty.count(0, left.extents.bytes());
                state.waiting = left.extents;
                state.base = BaseVersion::of_change(left.change);
                state.record = record;
                state.doubtful = true;
            }
            self.drop_arrived(&node);
            if let Err(status) = self.commit_below(&node) {
                tracing::warn!(%status, "data of an earlier run is not written yet");
            }
        }
    }

    /// The number of the last record in the journal, which covers the data that is left and nothing
    /// that is written later: an append of no data returns it. With 0 nothing is noted as done, and
    /// the next start compares the data again.
    fn last_record(&self, left: &Left) -> u64 {
        let Some(journal) = self.journal.as_ref() else { return 0 };
        journal.append((left.file, left.change), &left.cred, 0, &[]).unwrap_or_else(|error| {
            tracing::warn!(%error, "the journal cannot note that its data is written");
            0
        })
    }

    /// Drops the data of a file if the file already contains it: then the lost write has changed
    /// the file's change attribute, not another client.
    fn drop_arrived(&self, node: &Handle) {
        let Some(file) = self.dirty.get(node) else { return };
        let base = file.lock().base;
        let Ok(attr) = self.fs.getattr(node) else { return };
        if attr.change == base.change {
            return;
        }
        let extents = file.lock().waiting.clone();
        let cred = file.lock().cred.clone();
        let same = |(at, data): (u64, &[u8])| {
            let mut bytes = Vec::new();
            self.read_below(&cred, node, (at, data.len()), &mut bytes) == Ok(()) && bytes == data
        };
        if extents.iter().all(same) {
            let mut state = file.lock();
            self.dirty.count(state.waiting.bytes(), 0);
            state.waiting = Default::default();
            state.doubtful = false;
        }
    }

    fn read_below(
        &self,
        cred: &comity_vfs::Cred<comity_vfs::Disk>,
        node: &Handle,
        (offset, length): (u64, usize),
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        while bytes.len() < length {
            let at = offset + bytes.len() as u64;
            let count = (length - bytes.len()).min(crate::limits::TRANSFER_BYTES_MAX as usize);
            let mut into = ReadInto { opened: true, ..ReadInto::new(bytes) };
            let read = self.fs.read(cred, node, at, count as u32, &mut into)?;
            if read.data.length() == 0 {
                return Err(Status::NoData);
            }
        }
        Ok(())
    }

    /// Sends all unsent data, before the process ends. Returns the number of files whose data could
    /// not be sent; with a journal it is sent at the next start.
    pub fn finish(&self) -> usize {
        self.store.save();
        let files = self.dirty.all();
        let failed = files.into_iter().filter(|(node, _)| self.commit_below(node).is_err());
        failed.count()
    }

    pub(super) fn journal_failed(error: &io::Error) {
        tracing::error!(%error, "the journal cannot be read: writes are kept in memory only");
    }
}
