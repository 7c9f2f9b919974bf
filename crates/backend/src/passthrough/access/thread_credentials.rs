use std::cell::{Cell, RefCell};

use comity_vfs::{AsServer, Cred, Disk, Result, Status};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::errno::status;
use crate::sys;

/// The identity under which a thread makes its system calls.
///
/// File-system ids and groups belong to a thread. Each thread remembers its present ids, so that a
/// series of calls for one caller costs nothing, and keeps them until a call for another caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Each call has the ids of its caller.
    PerCaller,
    /// All calls have the server's own ids.
    Server,
}

/// The present ids of a thread.
#[derive(Debug)]
enum Present {
    /// The ids are unknown: a new thread inherits those of its creator, and a switch may have
    /// failed half-way.
    Unknown,
    Server,
    Caller(Cred<Disk>),
}

thread_local! {
    static PRESENT: RefCell<Present> = const { RefCell::new(Present::Unknown) };
    static PREPARED: Cell<bool> = const { Cell::new(false) };
}

impl Identity {
    /// Returns the identity that this process can use: that of each caller only if it has all three
    /// capabilities.
    pub(crate) fn available() -> Self {
        let needed = CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::DAC_OVERRIDE;
        let may = capabilities(None).is_ok_and(|sets| sets.permitted.contains(needed));
        if may && rustix::process::geteuid().is_root() && Self::PerCaller.server().is_ok() {
            AsServer::restored_by(|| Self::PerCaller.server());
            Self::PerCaller
        } else {
            Self::Server
        }
    }

    /// Returns whether this process may take leases on files of any owner (CAP_LEASE).
    pub(crate) fn may_lease_all() -> bool {
        capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::LEASE))
    }

    /// Returns whether leases can be used at all. An ordinary user can lease its own files.
    /// Otherwise the result would depend on the present ids of a thread.
    pub(crate) fn may_lease(self) -> bool {
        self == Self::Server || Self::may_lease_all()
    }

    /// Takes on the ids of `cred` for the following calls of this thread.
    pub(crate) fn caller(self, cred: &Cred<Disk>) -> Result<()> {
        if self == Self::Server {
            return Ok(());
        }
        PRESENT.with_borrow_mut(|present| match present {
            Present::Caller(now) if now == cred => Ok(()),
            _ => become_caller(present, cred),
        })
    }

    /// Ensures that the following calls of this thread have the server's own rights.
    pub(crate) fn server(self) -> Result<()> {
        if self == Self::Server {
            return Ok(());
        }
        PRESENT.with_borrow_mut(|present| match present {
            Present::Server => Ok(()),
            // The superuser of the disk has every right already.
            Present::Caller(now) if now.is_root() => Ok(()),
            _ => become_server(present),
        })
    }

    /// Does `work` with the server's own rights. Afterwards the thread has its present ids again.
    ///
    /// # Errors
    /// The ids cannot be changed.
    pub(crate) fn as_server<T>(self, work: impl FnOnce() -> T) -> Result<T> {
        let caller = PRESENT.with_borrow(|present| match present {
            Present::Caller(cred) => Some(cred.clone()),
            Present::Unknown | Present::Server => None,
        });
        self.server()?;
        let done = work();
        caller.map_or(Ok(()), |cred| self.caller(&cred))?;
        Ok(done)
    }
}

fn become_caller(present: &mut Present, cred: &Cred<Disk>) -> Result<()> {
    // To the kernel this id means "leave the id as it is", so the ids of the previous caller would
    // stay.
    if cred.uid.number() == u32::MAX || cred.gid.number() == u32::MAX {
        return Err(Status::Acces);
    }
    prepare_thread();
    *present = Present::Unknown;
    let groups: Vec<u32> = cred.groups.iter().map(|gid| gid.number()).collect();
    sys::set_groups(&groups).map_err(status)?;
    sys::set_fs_gid(cred.gid.number());
    sys::set_fs_uid(cred.uid.number());
    if sys::fs_uid() != cred.uid.number() || sys::fs_gid() != cred.gid.number() {
        return Err(Status::Acces);
    }
    *present = Present::Caller(cred.clone());
    Ok(())
}

fn become_server(present: &mut Present) -> Result<()> {
    *present = Present::Unknown;
    sys::set_fs_uid(0);
    sys::set_fs_gid(0);
    sys::set_groups(&[]).map_err(status)?;
    *present = Present::Server;
    Ok(())
}

/// Drops CAP_SYS_RESOURCE, with which a write would exceed quotas and use the blocks reserved for
/// root. A capability belongs to a thread, so each drops it before its first call for a caller.
fn prepare_thread() {
    if PREPARED.replace(true) {
        return;
    }
    if let Ok(mut sets) = capabilities(None) {
        sets.effective.remove(CapabilitySet::SYS_RESOURCE);
        if let Err(error) = set_capabilities(None, sets) {
            tracing::warn!(%error, "CAP_SYS_RESOURCE cannot be dropped: quotas are not enforced");
        }
    }
}

#[cfg(test)]
mod tests {
    use comity_vfs::{Gid, Uid};

    use super::*;

    #[test]
    fn the_ids_of_a_caller_return_after_work_as_the_server() {
        let identity = Identity::available();
        if identity == Identity::Server {
            eprintln!("skipped: this process cannot act for callers");
            return;
        }
        identity.caller(&Cred::new(Uid::new(7), Gid::new(8))).unwrap();
        let ids = || (sys::fs_uid(), sys::fs_gid());
        assert_eq!(identity.as_server(ids), Ok((0, 0)));
        assert_eq!(ids(), (7, 8));
        identity.server().unwrap();
        assert_eq!(identity.as_server(ids), Ok((0, 0)));
        assert_eq!(ids(), (0, 0));
    }
}
