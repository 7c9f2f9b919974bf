//! Opens of files as the names by which they were looked up.
//!
//! The layer below refuses an open with ESTALE if the name no longer means this file. The kernel
//! then looks the whole path up again and repeats the open, once. A path that has no names to look
//! up, such as `/proc/self/fd/3` or a file on which another is mounted, is repeated as it was. So
//! the repeated open does not depend on the name.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use comity_vfs::{Cred, Disk, Handle, OpenAccess, OpenFiles, OpenedFile};
use rustix::io::{self, Errno};

use super::Mounted;
use super::names::name;
use crate::callers::Requester;
use crate::limits::{STALE_OPEN_TIME, STALE_OPENS_MAX};

/// The threads whose open was refused because of its name, each with the file's number and the
/// moment.
#[derive(Debug, Default)]
pub(super) struct StaleOpens(Mutex<HashMap<u32, (u64, Instant)>>);

impl StaleOpens {
    fn note(&self, (thread, number): (u32, u64), now: Instant) {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.retain(|_, (_, then)| now.duration_since(*then) < STALE_OPEN_TIME);
        if threads.len() < STALE_OPENS_MAX {
            threads.insert(thread, (number, now));
        }
    }

    /// Returns whether an open is the repetition of a refused one. If the path has names to look
    /// up, they mean another file or none, and the thread's next open is of another file.
    fn take(&self, (thread, number): (u32, u64), now: Instant) -> bool {
        let mut threads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        threads.remove(&thread).is_some_and(|(refused, then)| {
            refused == number && now.duration_since(then) < STALE_OPEN_TIME
        })
    }
}

impl Mounted {
    /// Opens a file at the server, as the name by which it was looked up last unless the open is
    /// the repetition of a refused one or that name is hidden.
    pub(super) fn open_named(
        &self,
        who: Requester,
        files: &dyn OpenFiles,
        (number, node, cred): (u64, &Handle, &Cred<Disk>),
        access: OpenAccess,
    ) -> io::Result<OpenedFile> {
        let is_repeated = self.stale_opens.take((who.pid, number), Instant::now());
        let place = self.inodes.place(number).filter(|_| !is_repeated && !self.removed.has(node));
        let place = place.as_ref().map(|(dir, bytes)| Ok::<_, Errno>((dir, name(bytes)?)));
        let place = place.transpose()?;
        let opened = self.verb(who, || files.open(cred, node, place, access));
        opened.inspect_err(|error| {
            if *error == Errno::STALE && place.is_some() {
                self.stale_opens.note((who.pid, number), Instant::now());
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_open_of_the_same_thread_is_the_repetition_and_only_for_a_moment() {
        let (opens, now) = (StaleOpens::default(), Instant::now());
        opens.note((7, 1), now);
        assert!(!opens.take((8, 1), now));
        assert!(opens.take((7, 1), now));
        assert!(!opens.take((7, 1), now));
        opens.note((7, 1), now);
        assert!(!opens.take((7, 1), now + STALE_OPEN_TIME));
    }

    #[test]
    fn an_open_of_another_file_is_no_repetition() {
        let (opens, now) = (StaleOpens::default(), Instant::now());
        opens.note((7, 1), now);
        assert!(!opens.take((7, 2), now));
        assert!(!opens.take((7, 1), now));
    }
}
