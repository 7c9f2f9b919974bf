//! Owners and states of a client as plain values, for a move to another engine.

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use super::RevokedState;
use super::grant::UnacknowledgedGrant;
use super::owner::{Owner, OwnerKind, OwnerReply};
use super::state::{DelegationState, LockState, OpenState, State, StateKind};
use crate::file::{ExportedRecall, ExportedWriter, share_of};
use crate::{
    ByteRange, ClientId, DelegationKind, Error, FileKey, Grantee, LockType, Principal, Result,
    Share, StateName,
};

/// An open-owner or lock-owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedOwner {
    /// Its number among the client's owners and states.
    pub number: u32,
    /// The kind of its states.
    pub kind: OwnerKind,
    /// Its name.
    pub name: Box<[u8]>,
    /// The principal that uses it.
    pub principal: Principal,
    /// The export through which it asked for its last lock.
    pub export: u32,
    /// True if OPEN_CONFIRM was received, or is not needed.
    pub confirmed: bool,
    /// The seqid of its last operation, in minor version 0.
    pub seqid: u32,
    /// The result of that operation, which is kept for a retry.
    pub last: Option<OwnerReply>,
    /// The state whose CLOSE was that operation.
    pub closed: Option<u32>,
    /// Time since its last request.
    pub idle: Duration,
}

/// A lock that was granted to a host of NLM, which has not acknowledged NLM_GRANTED yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedGrant {
    /// The lock-owner.
    pub owner: u32,
    /// The file.
    pub file: FileKey,
    /// The bytes.
    pub range: ByteRange,
    /// Read or write.
    pub kind: LockType,
    /// The locks within the range that the owner had before.
    pub before: Vec<(ByteRange, LockType)>,
}

/// A state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportedState {
    /// Its number among the client's owners and states.
    pub number: u32,
    /// The name by which the client knows it, if that is not its clientid and this number.
    pub known_as: Option<StateName>,
    /// The seqid of its stateid.
    pub seqid: u32,
    /// Its age, in whole seconds.
    pub age: Duration,
    /// The file.
    pub file: FileKey,
    /// Its kind and details.
    pub kind: ExportedKind,
}

impl ExportedState {
    /// Returns the name by which `client`, whose state it is, knows it.
    pub(crate) fn name(&self, client: ClientId) -> StateName {
        self.known_as.unwrap_or(StateName { client, number: self.number })
    }
}

/// The kind and details of a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportedKind {
    /// An open.
    Open {
        /// The open-owner.
        owner: u32,
        /// Access and deny mode.
        share: Share,
        /// The credentials of the user whose rights were checked at each OPEN, if it was always the
        /// same user.
        user: Option<Arc<Cred<Disk>>>,
        /// The shares with which it was opened, one bit each.
        opened: u16,
        /// True if it is closed, and kept for a retry of its CLOSE.
        closed: bool,
        /// True if all users of the client share it.
        shared: bool,
        /// The key on whose grants it rests.
        grantee: Option<Arc<Grantee>>,
    },
    /// The locks of a lock-owner.
    Lock {
        /// The lock-owner.
        owner: u32,
        /// The number of the open; zero for a host of NLM.
        open: u32,
        /// Number of ranges that this state counts against the client's memory.
        counted: u32,
        /// The ranges of the file that the owner has locked, through any of its opens.
        ranges: Vec<(ByteRange, LockType)>,
        /// True if all users of the client share it.
        shared: bool,
    },
    /// A delegation.
    Delegation {
        /// The access that it allows.
        kind: DelegationKind,
        /// The principal that received it.
        principal: Principal,
        /// The credentials of the user whose rights were checked at the OPEN.
        user: Option<Arc<Cred<Disk>>>,
        /// The access for which they were checked.
        access: u32,
        /// The change attribute of the file when the delegation was granted.
        given: Option<u64>,
        /// The key on whose grants it rests.
        grantee: Option<Arc<Grantee>>,
        /// The recall, if one is under way.
        recall: Option<ExportedRecall>,
        /// The answers of the holder to CB_GETATTR, if it was asked.
        writer: Option<ExportedWriter>,
    },
    /// A state that was revoked and not freed by the client.
    Revoked(RevokedState),
}

impl Owner {
    /// Returns the owner as a plain value.
    ///
    /// # Errors
    /// [`Error::Delay`]: an operation of the owner is under way.
    pub(crate) fn exported(&self, now: Duration, number: u32) -> Result<ExportedOwner> {
        if self.busy || self.unanswered {
            return Err(Error::Delay);
        }
        Ok(ExportedOwner {
            number,
            kind: self.kind,
            name: self.name.clone(),
            principal: self.principal,
            export: self.export,
            confirmed: self.confirmed,
            seqid: self.seqid,
            last: self.last.clone(),
            closed: self.closed,
            idle: now.saturating_sub(self.used),
        })
    }

    /// Makes an owner of a plain value.
    pub(crate) fn imported(now: Duration, owner: ExportedOwner) -> Self {
        let ExportedOwner { export, confirmed, seqid, last, closed, .. } = owner;
        let named = (&*owner.name, owner.principal);
        let new = Self::new(now.saturating_sub(owner.idle), owner.kind, named, 0);
        Self { export, confirmed, seqid, last, closed, ..new }
    }
}

impl UnacknowledgedGrant {
    pub(crate) fn exported(&self) -> ExportedGrant {
        let Self { owner, file, range, kind, ref before } = *self;
        ExportedGrant { owner, file, range, kind, before: before.clone() }
    }

    pub(crate) fn imported(grant: &ExportedGrant) -> Self {
        let ExportedGrant { owner, file, range, kind, ref before } = *grant;
        Self { owner, file, range, kind, before: before.clone() }
    }
}

impl State {
    /// Returns the state as a plain value, with the details in `kind`.
    pub(crate) fn exported(
        &self,
        now: Duration,
        (number, known_as): (u32, Option<StateName>),
        kind: ExportedKind,
    ) -> ExportedState {
        let (seqid, age, file) = (self.seqid, self.age(now), self.file.key);
        ExportedState { number, known_as, seqid, age, file, kind }
    }
}

impl OpenState {
    pub(crate) fn exported(&self) -> ExportedKind {
        let Self { owner, share, user, opened, closed, shared, grantee } = self.clone();
        ExportedKind::Open { owner, share, user, opened, closed, shared, grantee }
    }
}

impl ExportedKind {
    /// Returns the details of the state.
    pub(crate) fn imported(&self) -> StateKind {
        match self.clone() {
            Self::Open { owner, share, user, opened, closed, shared, grantee } => {
                StateKind::Open(OpenState { owner, share, user, opened, closed, shared, grantee })
            }
            Self::Lock { owner, open, counted, shared, .. } => {
                StateKind::Lock(LockState { owner, open, ranges: counted, shared })
            }
            Self::Delegation { kind, principal, user, access, grantee, .. } => {
                let delegating = DelegationState { kind, principal, user, access, grantee };
                StateKind::Delegation(delegating)
            }
            Self::Revoked(revoked) => StateKind::Revoked(revoked),
        }
    }

    /// Returns whether the file has no record of the state: it is closed or revoked.
    pub(crate) const fn is_over(&self) -> bool {
        matches!(self, Self::Open { closed: true, .. } | Self::Revoked(_))
    }

    /// Returns the share of this state that delegations of other clients may conflict with.
    pub(crate) fn share(&self) -> Option<Share> {
        match self {
            Self::Open { closed: true, .. } | Self::Revoked(_) => None,
            Self::Open { share, .. } => Some(*share),
            Self::Lock { ranges, .. } => {
                let strongest = ranges.iter().map(|(_, kind)| *kind).max();
                strongest.map(share_of)
            }
            Self::Delegation { kind: DelegationKind::Write, .. } => {
                Some(Share::access(Share::BOTH))
            }
            Self::Delegation { .. } => Some(Share::access(Share::READ)),
        }
    }
}
