//! The data servers that no file of a placement names any more, although it may have them still.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limits::DATA_SERVERS_MAX;

/// The names of data servers that were drained to the end, since new files were last placed there.
#[derive(Default)]
pub(crate) struct DrainedServers(Mutex<BTreeSet<Box<str>>>);

impl DrainedServers {
    /// Notes the end of a drain. If there is no room, earlier drains have to be repeated.
    pub(crate) fn note(&self, server: &str) {
        let mut names = self.names();
        if names.len() >= DATA_SERVERS_MAX {
            names.clear();
        }
        names.insert(server.into());
    }

    pub(crate) fn contains(&self, server: &str) -> bool {
        self.names().contains(server)
    }

    /// Forgets the data servers that may get new files.
    pub(crate) fn forget(&self, takes_files: impl Fn(&str) -> bool) {
        self.names().retain(|name| !takes_files(name));
    }

    fn names(&self) -> MutexGuard<'_, BTreeSet<Box<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_the_data_servers_of_a_placement() {
        let (drained, name) = (DrainedServers::default(), |at: usize| format!("s{at}"));
        (0..DATA_SERVERS_MAX).for_each(|at| drained.note(&name(at)));
        assert!((0..DATA_SERVERS_MAX).all(|at| drained.contains(&name(at))));
        drained.note("more");
        assert!(drained.contains("more") && !drained.contains("s0"));
        assert!(drained.names().len() <= DATA_SERVERS_MAX);
    }
}
