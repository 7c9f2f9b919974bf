use std::time::SystemTime;

use comity_vfs::{Access, Cred, Disk, FileType, Handle, Result, Status, Time};
use rustix::fs::Stat;
use rustix::io::Errno;

use crate::errno::status;
use crate::passthrough::Passthrough;
use crate::passthrough::attributes::attr::ctime;
use crate::passthrough::handles::node::Node;
use crate::passthrough::limits::{CACHED_ACCESSES_PER_NODE, TIME_GRAIN, TIME_GRAIN_COARSE};
use crate::sys;

/// Rights in the form of the kernel: a set of `R_OK`, `W_OK` and `X_OK`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Rights(i32);

impl Rights {
    pub(crate) const NONE: Self = Self(0);
    pub(crate) const READ: Self = Self(libc::R_OK);
    pub(crate) const WRITE: Self = Self(libc::W_OK);
    pub(crate) const EXECUTE: Self = Self(libc::X_OK);

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// Cached decisions of the kernel about access to one object.
///
/// Every change that may alter a decision changes the object's ctime. So a decision is valid while
/// the ctime is the same, provided that the ctime was old enough when the decision was made: a
/// later change then gets another ctime.
#[derive(Debug, Default)]
pub(crate) struct AccessCache {
    kept: Vec<CachedAccess>,
    next: usize,
}

#[derive(Debug)]
struct CachedAccess {
    cred: Cred<Disk>,
    ctime: Time,
    asked: Rights,
    granted: Rights,
}

impl AccessCache {
    /// Returns the rights that are known to be granted, and those that were checked.
    fn find(&self, cred: &Cred<Disk>, ctime: Time) -> (Rights, Rights) {
        self.kept
            .iter()
            .find(|verdict| verdict.ctime == ctime && verdict.cred == *cred)
            .map_or((Rights::NONE, Rights::NONE), |verdict| (verdict.granted, verdict.asked))
    }

    fn keep(&mut self, verdict: CachedAccess) {
        if let Some(old) = self.kept.iter_mut().find(|old| old.cred == verdict.cred) {
            *old = verdict;
        } else if self.kept.len() < CACHED_ACCESSES_PER_NODE {
            self.kept.push(verdict);
        } else {
            self.kept[self.next % CACHED_ACCESSES_PER_NODE] = verdict;
            self.next = self.next.wrapping_add(1);
        }
    }
}

impl Passthrough {
    /// Returns the subset of `wanted` that the file system grants the caller; `stat` is fresh.
    pub(crate) fn rights(
        &self,
        cred: &Cred<Disk>,
        node: &Node,
        stat: &Stat,
        wanted: Rights,
    ) -> Result<Rights> {
        let ctime = ctime(stat);
        let (mut granted, mut asked) = lock(node).find(cred, ctime);
        if asked.contains(wanted) {
            return Ok(Rights(granted.0 & wanted.0));
        }
        // Check this before asking the kernel: a change after the kernel's answer must get a later
        // ctime.
        let lasts = is_past(ctime);
        self.identity.caller(cred)?;
        for right in [Rights::READ, Rights::WRITE, Rights::EXECUTE] {
            if wanted.contains(right) && !asked.contains(right) {
                asked = asked.union(right);
                if kernel_grants(node, right)? {
                    granted = granted.union(right);
                }
            }
        }
        if lasts {
            lock(node).keep(CachedAccess { cred: cred.clone(), ctime, asked, granted });
        }
        Ok(Rights(granted.0 & wanted.0))
    }

    /// Returns [`Status::Acces`] unless the caller may read the file's data: by its rights, as its
    /// owner, or because it may execute it.
    pub(crate) fn admit_reader(&self, cred: &Cred<Disk>, node: &Node, stat: &Stat) -> Result<()> {
        if self.is_owner(cred, stat)
            || self.rights(cred, node, stat, Rights::READ)? == Rights::READ
            || self.rights(cred, node, stat, Rights::EXECUTE)? == Rights::EXECUTE
        {
            Ok(())
        } else {
            Err(Status::Acces)
        }
    }

    /// Returns [`Status::Acces`] unless the caller may write the file's data: by its rights or as
    /// its owner.
    pub(crate) fn admit_writer(&self, cred: &Cred<Disk>, node: &Node, stat: &Stat) -> Result<()> {
        if self.is_owner(cred, stat)
            || self.rights(cred, node, stat, Rights::WRITE)? == Rights::WRITE
        {
            Ok(())
        } else {
            Err(Status::Acces)
        }
    }

    /// The rights of [`Access`] that the caller has.
    pub(crate) fn granted(
        &self,
        cred: &Cred<Disk>,
        node: &Node,
        stat: &Stat,
        wanted: Access,
    ) -> Result<Access> {
        let table = if node.kind == FileType::Directory { DIRECTORY } else { OTHER };
        let needed = table
            .iter()
            .filter(|(access, _)| wanted.contains(*access))
            .fold(Rights::NONE, |all, (_, rights)| all.union(*rights));
        let had = self.rights(cred, node, stat, needed)?;
        Ok(table
            .iter()
            .filter(|(access, rights)| wanted.contains(*access) && had.contains(*rights))
            .fold(Access::NONE, |all, (access, _)| all | *access))
    }

    /// See [`comity_vfs::Fs::owns`]. If the server has no privileges, every caller counts as the
    /// owner of the server's own files.
    pub(in crate::passthrough) fn owns(&self, cred: &Cred<Disk>, node: &Handle) -> Result<bool> {
        let node = self.node(node)?;
        Ok(cred.uid.number() == 0 || self.is_owner(cred, &self.stat(&node)?))
    }

    fn is_owner(&self, cred: &Cred<Disk>, stat: &Stat) -> bool {
        self.owner_uid(cred) == stat.st_uid
    }
}

/// The rights that each kind of access to a directory needs.
const DIRECTORY: &[(Access, Rights)] = &[
    (Access::READ, Rights::READ),
    (Access::LOOKUP, Rights::EXECUTE),
    (Access::MODIFY, Rights::WRITE.union(Rights::EXECUTE)),
    (Access::EXTEND, Rights::WRITE.union(Rights::EXECUTE)),
    (Access::DELETE, Rights::WRITE.union(Rights::EXECUTE)),
];

/// The rights that each kind of access to any other object needs.
const OTHER: &[(Access, Rights)] = &[
    (Access::READ, Rights::READ),
    (Access::MODIFY, Rights::WRITE),
    (Access::EXTEND, Rights::WRITE),
    (Access::EXECUTE, Rights::EXECUTE),
];

fn lock(node: &Node) -> std::sync::MutexGuard<'_, AccessCache> {
    node.verdicts.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn kernel_grants(node: &Node, right: Rights) -> Result<bool> {
    use std::os::fd::AsFd;
    match sys::may_access(node.fd().as_fd(), right.0) {
        Ok(()) => Ok(true),
        Err(Errno::ACCESS | Errno::PERM | Errno::ROFS | Errno::TXTBSY) => Ok(false),
        Err(errno) => Err(status(errno)),
    }
}

/// Returns whether a time is long enough ago that a change made now gets a later one.
pub(crate) fn is_past(time: Time) -> bool {
    let Ok(now) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) else { return false };
    let Ok(seconds) = u64::try_from(time.seconds) else { return true };
    let grain = if time.nanoseconds == 0 { TIME_GRAIN_COARSE } else { TIME_GRAIN };
    now.checked_sub(grain)
        .is_some_and(|limit| (seconds, time.nanoseconds) < (limit.as_secs(), limit.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_whole_seconds_are_past_later() {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let time = |ago, nanoseconds| Time { seconds: (now - ago) as i64, nanoseconds };
        assert!(is_past(time(3, 1)) && is_past(time(4, 0)));
        assert!(!is_past(time(1, 0)), "the file system may keep seconds only");
    }
}
