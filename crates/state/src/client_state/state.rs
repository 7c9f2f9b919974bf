//! A state of a client: an open, the locks of an owner, or a delegation.

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use crate::file::File;
use crate::limits::{RANGE_BYTES, STATE_BYTES};
use crate::{ClientId, DelegationKind, Share, Stateid};

/// How many states of each kind a client has; opens that are only kept for a retry do not count.
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

/// A state: what a stateid stands for.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) file: Arc<File>,
    /// How often it was changed, as its stateid says. A host of NLM has none: how often that had
    /// started anew when it asked last, as it said.
    pub(crate) seqid: u32,
    /// When it began, in seconds.
    pub(crate) since_seconds: u32,
    pub(crate) what: StateKind,
}

impl State {
    /// How long it has been there, in whole seconds.
    pub(crate) fn age(&self, now: Duration) -> Duration {
        Duration::from_secs(now.as_secs().saturating_sub(self.since_seconds.into()))
    }

    /// Whose it is, if it is an owner's.
    pub(crate) const fn owner(&self) -> Option<u32> {
        self.what.owner()
    }

    /// Whether it is only remembered.
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

/// Which kind of state.
#[derive(Debug, Clone)]
pub(crate) enum StateKind {
    Open(OpenState),
    Lock(LockState),
    Delegation(DelegationState),
    /// A delegation that was taken back by force; it stays until the client frees it.
    Revoked,
}

impl StateKind {
    /// How much memory it takes.
    pub(crate) const fn bytes(&self) -> usize {
        match self {
            Self::Lock(locking) => STATE_BYTES + locking.range_bytes(),
            Self::Open(_) | Self::Delegation(_) | Self::Revoked => STATE_BYTES,
        }
    }

    /// What an owner has one state of: a file; of locks, an open of it (RFC 8881, 9.1.3). A
    /// lock-owner of a client has locks under opens only, and one of a host under none.
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
    /// Who opened it, each time, and was judged.
    pub(crate) user: Option<Arc<Cred<Disk>>>,
    /// The shares it was opened with, one bit each: what it may be downgraded to.
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
    /// Who opened the file, and was judged ...
    pub(crate) user: Option<Arc<Cred<Disk>>>,
    /// ... for this.
    pub(crate) access: u32,
}

/// The locks of a lock-owner under an open.
#[derive(Debug, Clone)]
pub(crate) struct LockState {
    pub(crate) owner: u32,
    pub(crate) open: u32,
    /// How many ranges it holds.
    pub(crate) ranges: u32,
    /// Locked under the name of another principal's owner.
    pub(crate) shared: bool,
}

impl LockState {
    /// How much memory its ranges take.
    pub(crate) const fn range_bytes(&self) -> usize {
        self.ranges as usize * RANGE_BYTES
    }
}

/// What a file is known by as long as somebody has it: there is one of each, and it stays where it
/// is.
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
