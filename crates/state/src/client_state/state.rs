//! A state of a client: an open, the locks of an owner, or a delegation.

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use crate::file::File;
use crate::limits::{RANGE_BYTES, STATE_BYTES};
use crate::{ClientId, DelegationKind, Share, Stateid};

/// Number of states of each kind that a client has, without opens that are only kept for a retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Opens.
    pub opens: usize,
    /// Lock states: one for each lock-owner and file.
    pub locks: usize,
    /// Delegations.
    pub delegations: usize,
    /// Delegations that were taken back by force and not freed by the client yet.
    pub revoked: usize,
}

impl Counts {
    pub(crate) const fn of(&mut self, what: &StateKind) -> Option<&mut usize> {
        match what {
            StateKind::Open(opening) if opening.closed => None,
            StateKind::Open(_) => Some(&mut self.opens),
            StateKind::Lock(_) => Some(&mut self.locks),
            StateKind::Delegation(_) => Some(&mut self.delegations),
            StateKind::Revoked => Some(&mut self.revoked),
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
    /// The seqid of its stateid, which counts its changes. Hosts of NLM have no stateids: theirs is
    /// the monitor's state (count of restarts) at the last request for it.
    pub(crate) seqid: u32,
    /// When it began, in seconds.
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

    /// Returns whether it is only remembered: closed, or revoked.
    pub(crate) fn is_over(&self) -> bool {
        match &self.what {
            StateKind::Open(opening) => opening.closed,
            StateKind::Revoked => true,
            StateKind::Lock(_) | StateKind::Delegation(_) => false,
        }
    }

    /// Changes it: its stateid is another from now on. The seqid never is zero (RFC 8881, 8.2.2).
    pub(crate) fn change(&mut self, client: ClientId, number: u32) -> Stateid {
        self.seqid = self.seqid.checked_add(1).unwrap_or(1);
        Stateid::new(client, number, self.seqid)
    }
}

/// The kind of a state.
#[derive(Debug, Clone)]
pub(crate) enum StateKind {
    Open(OpenState),
    Lock(LockState),
    Delegation(DelegationState),
    /// A delegation that was taken back by force; it stays until the client frees it.
    Revoked,
}

impl StateKind {
    /// Returns the bytes of memory that it takes.
    pub(crate) const fn bytes(&self) -> usize {
        match self {
            Self::Lock(locking) => STATE_BYTES + locking.range_bytes(),
            Self::Open(_) | Self::Delegation(_) | Self::Revoked => STATE_BYTES,
        }
    }

    /// Returns the key under which an owner has at most one state: the file, or the open for locks
    /// under one (RFC 8881, 9.1.3). Lock-owners of clients lock under opens only, those of hosts
    /// under none.
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
            Self::Delegation(_) | Self::Revoked => None,
        }
    }
}

/// An open of an owner.
#[derive(Debug, Clone)]
pub(crate) struct OpenState {
    pub(crate) owner: u32,
    pub(crate) share: Share,
    /// The user that opened it each time and was judged.
    pub(crate) user: Option<Arc<Cred<Disk>>>,
    /// The shares it was opened with, one bit each: it may be downgraded to these.
    pub(crate) opened: u16,
    /// Closed, and kept for a retry of its CLOSE (minor version 0).
    pub(crate) closed: bool,
    /// Opened under the name of another principal's owner: clients may have one owner for all their
    /// users (FreeBSD, `oneopenown`). Then it is the client's, and all of them may close it.
    pub(crate) shared: bool,
}

/// A delegation, and for whom the client asked the server when it got it.
#[derive(Debug, Clone)]
pub(crate) struct DelegationState {
    pub(crate) kind: DelegationKind,
    /// The user that opened the file and was judged ...
    pub(crate) user: Option<Arc<Cred<Disk>>>,
    /// ... and the access for which.
    pub(crate) access: u32,
}

/// The locks of a lock-owner under an open.
#[derive(Debug, Clone)]
pub(crate) struct LockState {
    pub(crate) owner: u32,
    pub(crate) open: u32,
    /// Number of ranges that it holds.
    pub(crate) ranges: u32,
    /// Locked under the name of another principal's owner.
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

/// The number of a lock-owner among all clients'.
pub(crate) const fn lock_owner(client: ClientId, owner: u32) -> u64 {
    (client.number() as u64) << 32 | owner as u64
}

/// The number of the client that has a [`lock_owner`].
pub(crate) const fn client_of_lock_owner(owner: u64) -> u32 {
    (owner >> 32) as u32
}
