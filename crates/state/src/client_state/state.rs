//! A state of a client: an open, the locks of an owner, a delegation, or a layout.

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use super::RevokedState;
use crate::file::File;
use crate::layout::LayoutState;
use crate::limits::{RANGE_BYTES, STATE_BYTES};
use crate::{ClientId, DelegationKind, Grantee, Principal, Share};

/// Number of states of each kind that a client has. Opens that are kept only for a retry do not
/// count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeldCounts {
    /// Number of opens.
    pub opens: usize,
    /// Number of lock states: one for each lock-owner and file.
    pub locks: usize,
    /// Number of delegations of files.
    pub delegations: usize,
    /// Number of delegations of directories.
    pub directories: usize,
    /// Number of layouts: one for each file.
    pub layouts: usize,
    /// Number of revoked states that the client has not freed yet.
    pub revoked: usize,
}

impl HeldCounts {
    /// Returns the number of delegations of files and directories.
    pub(crate) const fn all_delegations(&self) -> usize {
        self.delegations + self.directories
    }

    pub(crate) const fn of(&mut self, what: &StateKind) -> Option<&mut usize> {
        match what {
            StateKind::Open(opening) if opening.closed => None,
            StateKind::Open(_) => Some(&mut self.opens),
            StateKind::Lock(_) => Some(&mut self.locks),
            StateKind::Delegation(DelegationState { kind: DelegationKind::Directory, .. }) => {
                Some(&mut self.directories)
            }
            StateKind::Delegation(_) => Some(&mut self.delegations),
            StateKind::Layout(_) => Some(&mut self.layouts),
            StateKind::Revoked(_) => Some(&mut self.revoked),
        }
    }

    pub(crate) fn add(&mut self, what: &StateKind) {
        if let Some(count) = self.of(what) {
            *count += 1;
        }
    }

    pub(crate) fn take(&mut self, what: &StateKind) {
        if let Some(count) = self.of(what) {
            *count -= 1;
        }
    }
}

/// A state, which a stateid names.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) file: Arc<File>,
    /// The seqid of its stateid, which counts changes of the state. Hosts of NLM have no stateids:
    /// for them this is the state of their status monitor (count of restarts) at the last request
    /// for it.
    pub(crate) seqid: u32,
    /// Time at which it was made, in seconds.
    pub(crate) since_seconds: u32,
    pub(crate) what: StateKind,
}

impl State {
    /// Returns its age in whole seconds.
    pub(crate) fn age(&self, now: Duration) -> Duration {
        Duration::from_secs(now.as_secs().saturating_sub(self.since_seconds.into()))
    }

    /// Returns the number of its owner, if it has one.
    pub(crate) const fn owner(&self) -> Option<u32> {
        self.what.owner()
    }

    /// Returns whether the state is an open that is closed, and is kept only for a retry.
    pub(crate) const fn is_closed(&self) -> bool {
        matches!(&self.what, StateKind::Open(open) if open.closed)
    }

    /// Returns whether the state is closed or revoked, and is kept only for a retry.
    pub(crate) fn is_over(&self) -> bool {
        self.is_closed() || matches!(self.what, StateKind::Revoked(_))
    }

    /// Counts a change of the state; returns the next seqid of its stateid, which is never zero
    /// (RFC 8881, 8.2.2).
    pub(crate) fn change(&mut self) -> u32 {
        self.seqid = self.seqid.checked_add(1).unwrap_or(1);
        self.seqid
    }
}

/// The kind of a state.
#[derive(Debug, Clone)]
pub(crate) enum StateKind {
    Open(OpenState),
    Lock(LockState),
    Delegation(DelegationState),
    Layout(LayoutState),
    /// A state that was revoked, which is kept until the client knows.
    Revoked(RevokedState),
}

impl StateKind {
    /// Returns the bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Layout(layout) => STATE_BYTES + layout.range_bytes(),
            Self::Lock(locking) => STATE_BYTES + locking.range_bytes(),
            Self::Open(_) | Self::Delegation(_) | Self::Revoked(_) => STATE_BYTES,
        }
    }

    /// Returns the key under which an owner has at most one state. For an open that is the file;
    /// for locks it is the open (RFC 8881, 9.1.3). Locks of hosts of NLM belong to no open, so that
    /// their key is the file.
    pub(crate) fn subject(&self, file: &Arc<File>) -> usize {
        match self {
            Self::Lock(LockState { open: open @ 1.., .. }) => *open as usize,
            _ => address(file),
        }
    }

    pub(crate) const fn owner(&self) -> Option<u32> {
        match self {
            Self::Open(opening) => Some(opening.owner),
            Self::Lock(locking) => Some(locking.owner),
            Self::Delegation(_) | Self::Layout(_) | Self::Revoked(_) => None,
        }
    }

    /// Returns what is kept of it, if it was revoked.
    pub(crate) const fn revoked(&self) -> Option<&RevokedState> {
        match self {
            Self::Revoked(revoked) => Some(revoked),
            Self::Open(_) | Self::Lock(_) | Self::Delegation(_) | Self::Layout(_) => None,
        }
    }

    /// Returns the key on whose grants an open or a delegation rests, if it rests on grants. Locks
    /// rest on their open.
    pub(crate) const fn grantee(&self) -> Option<&Arc<Grantee>> {
        match self {
            Self::Open(opening) => opening.grantee.as_ref(),
            Self::Delegation(delegating) => delegating.grantee.as_ref(),
            Self::Lock(_) | Self::Layout(_) | Self::Revoked(_) => None,
        }
    }
}

/// An open of an owner.
#[derive(Debug, Clone)]
pub(crate) struct OpenState {
    pub(crate) owner: u32,
    pub(crate) share: Share,
    /// The credentials of the user whose rights were checked at each OPEN, if it was always the
    /// same user.
    pub(crate) user: Option<Arc<Cred<Disk>>>,
    /// The shares with which it was opened, one bit each. OPEN_DOWNGRADE may choose among them.
    pub(crate) opened: u16,
    /// True if it is closed, and kept for a retry of its CLOSE (minor version 0).
    pub(crate) closed: bool,
    /// True if several principals opened it under one owner. A client may use one owner for all its
    /// users (FreeBSD, `oneopenown`). The open then belongs to the client, and all its users may
    /// close it.
    pub(crate) shared: bool,
    /// The key whose grants allowed the last OPEN that grants were asked for.
    pub(crate) grantee: Option<Arc<Grantee>>,
}

/// A delegation, and the user for whom the client requested it.
#[derive(Debug, Clone)]
pub(crate) struct DelegationState {
    pub(crate) kind: DelegationKind,
    /// The principal that received it.
    pub(crate) principal: Principal,
    /// The credentials of the user whose rights were checked at the OPEN.
    pub(crate) user: Option<Arc<Cred<Disk>>>,
    /// The access for which they were checked.
    pub(crate) access: u32,
    /// The key whose grants allowed the OPEN.
    pub(crate) grantee: Option<Arc<Grantee>>,
}

/// The locks of a lock-owner for an open.
#[derive(Debug, Clone)]
pub(crate) struct LockState {
    pub(crate) owner: u32,
    pub(crate) open: u32,
    /// Number of ranges that it has locked.
    pub(crate) ranges: u32,
    /// True if another principal locked under the same owner.
    pub(crate) shared: bool,
}

impl LockState {
    /// Returns the bytes of memory that its ranges take.
    pub(crate) const fn range_bytes(&self) -> usize {
        self.ranges as usize * RANGE_BYTES
    }
}

/// Returns the address of a file, which identifies it as long as a state refers to it.
pub(crate) fn address(file: &Arc<File>) -> usize {
    Arc::as_ptr(file) as usize
}

/// Returns the number of a lock-owner, which differs from those of all other clients.
pub(crate) const fn lock_owner(client: ClientId, owner: u32) -> u64 {
    (client.number() as u64) << 32 | owner as u64
}

/// Returns the number of the client to which a [`lock_owner`] belongs.
pub(crate) const fn client_of_lock_owner(owner: u64) -> u32 {
    (owner >> 32) as u32
}
