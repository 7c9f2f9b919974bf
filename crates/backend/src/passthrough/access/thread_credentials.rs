use std::cell::{Cell, RefCell};

use comity_vfs::{AsServer, Cred, Disk, Result, Status};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

use crate::passthrough::errno::status;
use crate::sys;

/// Under whose rights the calling thread speaks to the kernel.
///
/// File-system ids and groups belong to a thread. Each thread remembers which it has, so that a row
/// of calls for one caller costs nothing, and keeps them until another caller's turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Identity {
    /// Each caller's own.
    PerCaller,
    /// The server's own user, for everybody.
    Server,
}

/// The ids that a thread has now.
#[derive(Debug)]
enum Present {
    /// The ids are unknown: a new thread inherits those that its maker had at that moment, and a
    /// switch may have failed half-way.
    Unknown,
    Server,
    Caller(Cred<Disk>),
}

thread_local! {
    static PRESENT: RefCell<Present> = const { RefCell::new(Present::Unknown) };
    static PREPARED: Cell<bool> = const { Cell::new(false) };
}

impl Identity {
    /// Returns the identity that this process may take on: without all three capabilities no
    /// caller's ids.
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

    /// Returns whether leases can be had at all: of its own files by an ordinary user. Else it
    /// would depend on whose ids a thread has just then.
    pub(crate) fn may_lease(self) -> bool {
        self == Self::Server || Self::may_lease_all()
    }

    /// Takes on the ids of `cred` for the calls that follow in this thread.
    pub(crate) fn caller(self, cred: &Cred<Disk>) -> Result<()> {
        if self == Self::Server {
            return Ok(());
        }
        PRESENT.with_borrow_mut(|present| match present {
            Present::Caller(now) if now == cred => Ok(()),
            _ => become_caller(present, cred),
        })
    }

    /// Makes sure that the calls that follow in this thread have the server's own rights.
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
}

fn become_caller(present: &mut Present, cred: &Cred<Disk>) -> Result<()> {
    // To the kernel it means "leave the id as it is": that of the caller before.
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

/// With CAP_SYS_RESOURCE a write would pass over quotas and into the blocks reserved for root. The
/// capability belongs to a thread, so each gives it up before it first speaks for a caller.
fn prepare_thread() {
    if PREPARED.replace(true) {
        return;
    }
    if let Ok(mut sets) = capabilities(None) {
        sets.effective.remove(CapabilitySet::SYS_RESOURCE);
        if let Err(error) = set_capabilities(None, sets) {
            tracing::warn!(%error, "CAP_SYS_RESOURCE cannot be given up: quotas do not hold");
        }
    }
}
