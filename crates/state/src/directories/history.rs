use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::DirectoryUse;
use crate::limits::DIRECTORY_USES_MAX;
use crate::sync::Mutex;
use crate::table::lock;
use crate::{ClientId, FileKey};

type Uses = HashMap<(ClientId, FileKey), DirectoryUse, RandomState>;

/// The remembered use of directories. If there are too many, those that were not used for the
/// longest time are forgotten.
#[derive(Default)]
pub(crate) struct DirectoryHistory {
    generations: Mutex<Generations>,
}

/// The newer half fills; then it becomes the older half, and the previous older half is forgotten.
#[derive(Default)]
struct Generations {
    newer: Uses,
    older: Uses,
}

impl DirectoryHistory {
    /// Notes something of the use of a directory by a client; returns what is known now.
    pub(crate) fn note(
        &self,
        client: ClientId,
        directory: &FileKey,
        note: impl FnOnce(&mut DirectoryUse),
    ) -> DirectoryUse {
        let (mut generations, key) = (lock(&self.generations), (client, *directory));
        let Generations { newer, older } = &mut *generations;
        if newer.len() >= DIRECTORY_USES_MAX / 2 && !newer.contains_key(&key) {
            *older = std::mem::take(newer);
        }
        let seen = newer.entry(key).or_insert_with(|| older.remove(&key).unwrap_or_default());
        note(seen);
        *seen
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        let generations = lock(&self.generations);
        generations.newer.len() + generations.older.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use comity_vfs::Handle;

    use super::*;

    fn directory(number: usize) -> FileKey {
        let handle = Handle::new(&number.to_be_bytes()).unwrap();
        FileKey { volume: 1, export: 1, handle }
    }

    #[test]
    fn directories_that_were_not_used_for_long_are_forgotten() {
        let history = DirectoryHistory::default();
        let ask = |number: usize, seconds: usize| {
            let now = Duration::from_secs(seconds as u64);
            history.note(ClientId(1), &directory(number), |seen| seen.ask(now))
        };
        for number in 0..2 * DIRECTORY_USES_MAX {
            ask(number, number);
            assert!(history.len() <= DIRECTORY_USES_MAX);
        }
        let later = 3 * DIRECTORY_USES_MAX;
        assert_eq!(ask(0, later).pause(), None, "the first one was forgotten");
        assert!(ask(later / 3 * 2 - 1, later).pause().is_some(), "the last one is known");
        let other = history.note(ClientId(2), &directory(0), |_| ());
        assert_eq!(other.rest(), Duration::ZERO, "each client has its own use");
    }
}
