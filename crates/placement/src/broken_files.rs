//! The files of which a mirror is broken, as far as they are known.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::Handle;

use crate::limits::BROKEN_FILES_MAX;
use crate::record::PlaceRecord;

/// The files of which this process has met a broken mirror.
#[derive(Default)]
pub(crate) struct BrokenFiles(Mutex<BrokenTable>);

#[derive(Default)]
struct BrokenTable {
    files: HashMap<Handle, BrokenFile>,
    /// The files whose layouts are to be recalled.
    queue: VecDeque<Handle>,
}

struct BrokenFile {
    record: Arc<PlaceRecord>,
    /// True until no client has a layout that names the broken mirror.
    awaits_recall: bool,
}

impl BrokenFiles {
    /// Notes the place of a file. Layouts that name a mirror which is broken now must be recalled
    /// if `awaits_recall` is true.
    pub(crate) fn note(&self, file: &Handle, record: &Arc<PlaceRecord>, awaits_recall: bool) {
        let mut table = self.lock();
        let known = table.files.get(file).is_some_and(|it| it.awaits_recall);
        // A file that awaits a recall is kept until then; changes of it wait for that.
        if !awaits_recall && !known && table.files.len() >= BROKEN_FILES_MAX {
            return;
        }
        if awaits_recall && !known {
            table.queue.push_back(*file);
        }
        let it = BrokenFile { record: Arc::clone(record), awaits_recall: awaits_recall || known };
        table.files.insert(*file, it);
    }

    /// Returns whether layouts of a file have still to be recalled.
    pub(crate) fn awaits_recall(&self, file: &Handle) -> bool {
        self.lock().files.get(file).is_some_and(|it| it.awaits_recall)
    }

    /// Returns a file whose layouts are to be recalled.
    pub(crate) fn poll(&self) -> Option<Handle> {
        self.lock().queue.pop_front()
    }

    /// Notes whether the layouts of a file were recalled.
    pub(crate) fn recalled(&self, file: &Handle, done: bool) {
        let mut table = self.lock();
        let is_over = table.files.len() > BROKEN_FILES_MAX;
        let Some(it) = table.files.get_mut(file) else { return };
        it.awaits_recall = !done;
        match done {
            false => table.queue.push_back(*file),
            true if is_over => drop(table.files.remove(file)),
            true => {}
        }
    }

    /// Forgets a file that is gone, or has no broken mirror any more.
    pub(crate) fn forget(&self, file: &Handle) {
        self.lock().files.remove(file);
    }

    /// Counts the files whose mirrors on the data server of this name are broken.
    pub(crate) fn count(&self, server: &str) -> u64 {
        let is_broken = |it: &&BrokenFile| {
            let (record, broken) = (&it.record, it.record.broken());
            let mut names = record.servers.iter().enumerate();
            names.any(|(at, name)| **name == *server && broken.has(at))
        };
        self.lock().files.values().filter(is_broken).count() as u64
    }

    fn lock(&self) -> MutexGuard<'_, BrokenTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mirrors::MirrorSet;
    use crate::record::Spread;

    fn record(broken: usize) -> Arc<PlaceRecord> {
        let (spread, servers) = (Spread::Mirrors(MirrorSet::of(broken)), ["a", "b"]);
        let servers = servers.into_iter().map(Into::into).collect();
        let file = Handle::new(b"file").unwrap();
        Arc::new(PlaceRecord { file, number: 1, spread, servers })
    }

    #[test]
    fn a_file_is_polled_until_its_layouts_are_recalled() {
        let (broken, file) = (BrokenFiles::default(), Handle::new(b"file").unwrap());
        broken.note(&file, &record(1), true);
        broken.note(&file, &record(1), false);
        assert_eq!((broken.poll(), broken.poll()), (Some(file), None));
        broken.recalled(&file, false);
        assert!(broken.awaits_recall(&file));
        assert_eq!(broken.poll(), Some(file));
        broken.recalled(&file, true);
        assert!(!broken.awaits_recall(&file) && broken.poll().is_none());
        assert_eq!(["a", "b"].map(|server| broken.count(server)), [0, 1]);
        broken.forget(&file);
        assert_eq!(broken.count("b"), 0);
    }

    #[test]
    fn files_beyond_the_limit_are_forgotten_when_their_layouts_are_recalled() {
        let (broken, extra) = (BrokenFiles::default(), 3);
        let files = (0..BROKEN_FILES_MAX + extra).map(|at| Handle::new(&at.to_be_bytes()).unwrap());
        files.for_each(|file| broken.note(&file, &record(1), true));
        while let Some(file) = broken.poll() {
            broken.recalled(&file, true);
        }
        assert_eq!(broken.count("b"), BROKEN_FILES_MAX as u64);
    }
}
