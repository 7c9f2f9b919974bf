//! The credentials of the processes that make requests.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use comity_vfs::{Cred, Disk, Gid, Uid};

use crate::limits::CALLERS_MAX;
use crate::process;

/// The process that made a request, as the kernel identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Requester {
    /// Its thread id; 0 for the kernel itself, and for processes outside this process's pid
    /// namespace.
    pub(crate) pid: u32,
    /// Its uid for file systems (fsuid).
    pub(crate) uid: u32,
    /// Its gid for file systems (fsgid).
    pub(crate) gid: u32,
}

/// Credentials by requester. The kernel sends uid and gid; the supplementary groups are read from
/// proc(5) and cached for a moment.
#[derive(Debug)]
pub(crate) struct Callers {
    known: Mutex<HashMap<Requester, (Instant, Cred<Disk>)>>,
    life: Duration,
}

impl Callers {
    pub(crate) fn new(life: Duration) -> Self {
        Self { known: Mutex::default(), life }
    }

    /// Returns the credential of a requester.
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
    fn uid_and_gid_come_from_the_kernel_and_groups_from_the_process() {
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
