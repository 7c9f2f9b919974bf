//! The reasons why states are revoked, and how their clients are told.

use crate::{Error, Principal, StatusFlags};

/// The reason why a state was revoked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Revocation {
    /// The client did not return a delegation in time.
    Unreturned,
    /// The right on which an open and its locks rested has ended.
    RightEnded,
    /// The right on which a delegation rested has ended.
    DelegationRightEnded,
}

impl Revocation {
    const ALL: [Self; 3] = [Self::Unreturned, Self::RightEnded, Self::DelegationRightEnded];

    /// Returns the error of operations with a stateid of the state (RFC 8881, 15.1.5).
    pub(crate) const fn error(self) -> Error {
        match self {
            Self::Unreturned => Error::DelegRevoked,
            Self::RightEnded | Self::DelegationRightEnded => Error::AdminRevoked,
        }
    }

    /// Returns whether the state may be forgotten although its client has not freed it.
    pub(crate) const fn may_lapse(self) -> bool {
        matches!(self, Self::RightEnded | Self::DelegationRightEnded)
    }

    /// Returns the flags by which SEQUENCE tells the client (RFC 8881, 18.46.3). At the flag of
    /// recallable state Linux tests all its delegations, at the other one only those of open files.
    fn flags(self) -> StatusFlags {
        match self {
            Self::Unreturned => StatusFlags::RECALLABLE_STATE_REVOKED,
            Self::RightEnded => StatusFlags::ADMIN_STATE_REVOKED,
            Self::DelegationRightEnded => {
                StatusFlags::ADMIN_STATE_REVOKED | StatusFlags::RECALLABLE_STATE_REVOKED
            }
        }
    }
}

/// A state that was revoked, and its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RevokedState {
    /// The reason.
    pub why: Revocation,
    /// The principal to which the state belonged; none if all users of the client shared it.
    pub principal: Option<Principal>,
}

/// The number of revoked states of a client, by reason.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RevokedCounts([usize; 3]);

impl RevokedCounts {
    pub(crate) fn add(&mut self, why: Revocation) {
        self.of(why).into_iter().for_each(|count| *count += 1);
    }

    pub(crate) fn take(&mut self, why: Revocation) {
        self.of(why).into_iter().for_each(|count| *count = count.saturating_sub(1));
    }

    /// Returns the flags by which SEQUENCE tells the client of all of them.
    pub(crate) fn flags(self) -> StatusFlags {
        let known = self.0.iter().zip(Revocation::ALL).filter(|(count, _)| **count > 0);
        known.fold(StatusFlags::default(), |flags, (_, why)| flags | why.flags())
    }

    fn of(&mut self, why: Revocation) -> Option<&mut usize> {
        self.0.get_mut(why as usize)
    }
}
