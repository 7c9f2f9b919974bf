//! The credentials of the processes that make requests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use comity_vfs::{Cred, Disk, Gid, Uid};

use crate::limits::CALLERS_MAX;
use crate::process;

/// The process that makes a request, as the kernel names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Requester {
    /// The thread; 0 for the kernel itself, and for processes that this one cannot see.
    pub(crate) pid: u32,
    /// Its user for file systems.
    pub(crate) uid: u32,
    /// Its group for file systems.
    pub(crate) gid: u32,
}

/// Credentials by requester. The kernel tells user and group; the supplementary groups are read
/// from proc(5), and remembered for a moment.
#[derive(Debug)]
pub(crate) struct Callers {
    known: Mutex<HashMap<Requester, (Instant, Cred<Disk>)>>,
    life: Duration,
}

impl Callers {
    pub(crate) fn new(life: Duration) -> Self {
        Self { known: Mutex::default(), life }
    }

    /// The credential of a requester.
    pub(crate) fn cred(&self, requester: Requester) -> Cred<Disk> {
        let now = Instant::now();
        if let Some(cred) = self.known_cred(requester, now) {
            return cred;
        }
        let cred = Cred::new(Uid::new(requester.uid), Gid::new(requester.gid))
            .with_groups(process::groups(requester.pid));
        self.remember(requester, now, cred.clone());
        cred
    }

    fn known_cred(&self, requester: Requester, now: Instant) -> Option<Cred<Disk>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let (since, cred) = known.get(&requester)?;
        (now.duration_since(*since) < self.life).then(|| cred.clone())
    }

    fn remember(&self, requester: Requester, now: Instant, cred: Cred<Disk>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= CALLERS_MAX {
            known.retain(|_, (since, _)| now.duration_since(*since) < self.life);
        }
        if known.len() < CALLERS_MAX && !self.life.is_zero() {
            known.insert(requester, (now, cred));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requester(pid: u32) -> Requester {
        Requester { pid, uid: 5, gid: 6 }
    }

    #[test]
    fn user_and_group_are_the_kernels_and_groups_are_of_the_process() {
        let cred = Callers::new(Duration::ZERO).cred(requester(std::process::id()));
        assert_eq!((cred.uid.number(), cred.gid.number()), (5, 6));
        let own = rustix::process::getgroups().unwrap();
        assert_eq!(cred.groups.len(), own.len());
        assert!(own.iter().all(|gid| cred.groups.contains(&Gid::new(gid.as_raw()))));
    }

    #[test]
    fn the_cache_is_bounded_and_forgets() {
        let callers = Callers::new(Duration::from_secs(3600));
        for pid in 0..CALLERS_MAX as u32 + 10 {
            callers.cred(requester(u32::MAX - pid));
        }
        assert_eq!(callers.known.lock().unwrap().len(), CALLERS_MAX);
        let brief = Callers::new(Duration::ZERO);
        brief.cred(requester(u32::MAX));
        assert!(brief.known.lock().unwrap().is_empty());
    }
}
