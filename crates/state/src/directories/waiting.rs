//! Changes of directories whose clients were told to come back (NFS4ERR_DELAY, NFS3ERR_JUKEBOX).
//! The directory is not delegated until they have come back. Otherwise a holder that asks again at
//! once would have the directory each time, and the change would never be made.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;

use crate::limits::{CHANGE_WAITS, DIRECTORIES_WAITED_FOR_MAX, WAITING_CHANGERS_MAX};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicUsize, Ordering};
use crate::table::lock;
use crate::{ClientId, FileKey};

/// A client whose change waits, none if it is not one of NFSv4, and the end of the wait.
type Changer = (Option<ClientId>, Duration);

/// The changes that wait, by their directories.
#[derive(Default)]
pub(crate) struct WaitingChanges {
    /// Number of directories below, so that others cost one atomic load.
    count: AtomicUsize,
    by_directory: Mutex<HashMap<FileKey, Vec<Changer>, RandomState>>,
}

impl WaitingChanges {
    /// Notes that the change of a client waits. If there are too many, the newest one is left out:
    /// it may have to wait once more.
    pub(crate) fn begin(&self, now: Duration, directory: &FileKey, changer: Option<ClientId>) {
        let mut by_directory = lock(&self.by_directory);
        let is_new = !by_directory.contains_key(directory);
        if is_new && by_directory.len() >= DIRECTORIES_WAITED_FOR_MAX {
            return;
        }
        let waiting = by_directory.entry(*directory).or_default();
        waiting.retain(|(other, until)| *other != changer && *until > now);
        if waiting.len() < WAITING_CHANGERS_MAX {
            waiting.push((changer, now.saturating_add(CHANGE_WAITS)));
        }
        self.count.store(by_directory.len(), Ordering::SeqCst);
    }

    /// Notes that nothing stands against the change of a client any more.
    pub(crate) fn end(&self, directory: &FileKey, changer: Option<ClientId>) {
        if !self.are_there() {
            return;
        }
        let mut by_directory = lock(&self.by_directory);
        if let Some(waiting) = by_directory.get_mut(directory) {
            waiting.retain(|(other, _)| *other != changer);
            if waiting.is_empty() {
                by_directory.remove(directory);
            }
        }
        self.count.store(by_directory.len(), Ordering::SeqCst);
    }

    /// Returns whether a change of this directory waits.
    pub(crate) fn are_for(&self, now: Duration, directory: &FileKey) -> bool {
        self.are_there() && {
            let by_directory = lock(&self.by_directory);
            let waiting = by_directory.get(directory);
            waiting.is_some_and(|waiting| waiting.iter().any(|(_, until)| *until > now))
        }
    }

    /// Returns whether any change waits.
    pub(crate) fn are_there(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Forgets changes whose clients have not come back.
    pub(crate) fn forget(&self, now: Duration) {
        if !self.are_there() {
            return;
        }
        let mut by_directory = lock(&self.by_directory);
        by_directory.retain(|_, waiting| {
            waiting.retain(|(_, until)| *until > now);
            !waiting.is_empty()
        });
        self.count.store(by_directory.len(), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::Handle;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn directory(number: usize) -> FileKey {
        let handle = Handle::new(&number.to_be_bytes()).unwrap();
        FileKey { volume: 1, export: 1, handle }
    }

    #[test]
    fn a_directory_is_waited_for_until_each_change_has_come_back_or_its_time_is_over() {
        let (waiting, one, other) = (WaitingChanges::default(), directory(1), Some(ClientId(7)));
        waiting.begin(SECOND, &one, None);
        waiting.begin(SECOND, &one, other);
        assert!(waiting.are_for(SECOND, &one) && !waiting.are_for(SECOND, &directory(2)));
        waiting.end(&one, None);
        assert!(waiting.are_for(SECOND, &one), "the other one waits");
        waiting.end(&one, other);
        assert!(!waiting.are_for(SECOND, &one) && !waiting.are_there());
        waiting.begin(SECOND, &one, other);
        waiting.begin(SECOND * 3, &one, other);
        let end = SECOND * 3 + CHANGE_WAITS;
        assert!(
            waiting.are_for(end - Duration::from_nanos(1), &one) && !waiting.are_for(end, &one)
        );
        waiting.forget(end);
        assert!(!waiting.are_there());
    }

    #[test]
    fn the_number_of_changes_that_wait_is_bounded() {
        let waiting = WaitingChanges::default();
        for number in 0..=DIRECTORIES_WAITED_FOR_MAX {
            waiting.begin(SECOND, &directory(number), None);
        }
        assert!(!waiting.are_for(SECOND, &directory(DIRECTORIES_WAITED_FOR_MAX)));
        for client in 0..=WAITING_CHANGERS_MAX as u64 {
            waiting.begin(SECOND, &directory(0), Some(ClientId(client)));
        }
        let by_directory = lock(&waiting.by_directory);
        assert_eq!(by_directory.len(), DIRECTORIES_WAITED_FOR_MAX);
        assert!(by_directory.values().all(|changers| changers.len() <= WAITING_CHANGERS_MAX));
    }
}
