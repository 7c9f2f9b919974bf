//! Delegations: granted by policy, recalled for others, revoked when a recall is not heeded (RFC
//! 8881, 10.2 and 10.4).

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use crate::client_state::{ClientState, DelegationState, StateKind, client_of_lock_owner};
use crate::file::{Delegated, File, FileState, Holder};
use crate::sync::atomic::Ordering;
use crate::{Client, DelegationKind, Engine, LockType, Principal, Result, Share, Stateid};

/// The delegation that a client would like with an OPEN (`OPEN4_SHARE_ACCESS_WANT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DelegationWish {
    /// It did not say, as none of minor version 0 does.
    #[default]
    NoPreference,
    /// One for reading.
    Read,
    /// One for writing.
    Write,
    /// Either.
    Any,
    /// None.
    None,
    /// None, and not what it asked for earlier either.
    Cancel,
}

/// The delegation that a client gets with an OPEN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delegation {
    /// A delegation.
    Granted {
        /// Its stateid.
        stateid: Stateid,
        /// The access that it allows.
        kind: DelegationKind,
        /// True if it must be given back at once: it was reclaimed while another client waits for
        /// it.
        recall: bool,
    },
    /// None.
    Refused(NoDelegation),
}

/// The reason why there is none (`why_no_delegation4`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDelegation {
    /// The client did not want one.
    NotWanted,
    /// Others use the file, or did just now.
    Contention,
    /// No delegation is given, or not to this client, or none more.
    Resource,
    /// The earlier wish is cancelled.
    Cancelled,
}

/// Returns whether others have or want locks that the holder of a delegation would not see: it
/// locks without asking. Those of NLM are under no open.
fn locked(on_file: &FileState, client: &Client, kind: DelegationKind) -> bool {
    let kind = match kind {
        DelegationKind::Read => LockType::Read,
        DelegationKind::Write => LockType::Write,
    };
    let is_other = |owner: u64| client_of_lock_owner(owner) != client.id.number();
    !on_file.locks.is_empty() && on_file.locks.stands_against(kind, is_other)
}

/// A delegation that may be granted together with an open.
#[derive(Clone, Copy)]
pub(crate) struct DelegationRequest<'a> {
    /// The client that opens the file.
    pub(crate) client: &'a Arc<Client>,
    /// The principal that opens it.
    pub(crate) principal: Principal,
    /// The user that was judged, if the user was.
    pub(crate) user: Option<&'a Arc<Cred<Disk>>>,
    /// The access of this OPEN.
    pub(crate) access: u32,
    /// The delegation that is asked for.
    pub(crate) wanted: DelegationClaim,
}

/// The delegation that an OPEN asks for.
#[derive(Clone, Copy)]
pub(crate) enum DelegationClaim {
    /// A new delegation.
    New(DelegationWish),
    /// The one that the client had before the restart, if it had one.
    Reclaim(Option<DelegationKind>),
}

impl Engine {
    /// Grants a delegation with an open, if the policy allows it.
    pub(crate) fn delegate(
        &self,
        now: Duration,
        open: &DelegationRequest<'_>,
        file: &Arc<File>,
        (state, on_file): (&mut ClientState, &mut FileState),
    ) -> Delegation {
        let kind = match self.choose(now, open, on_file) {
            Ok(kind) => kind,
            Err(why) => return Delegation::Refused(why),
        };
        let limits = &self.settings.limits;
        let (user, access) = (open.user.cloned(), open.access);
        let what = StateKind::Delegation(DelegationState { kind, user, access });
        let Ok(number) = state.holdings.insert(limits, (now, file), what) else {
            return Delegation::Refused(NoDelegation::Resource);
        };
        let stateid = Stateid::new(open.client.id, number, 1);
        let holder = Holder { client: open.client.id, state: number };
        let principal = open.principal;
        let delegated =
            Delegated { kind, stateid, principal, recall: None, given: None, writer: None };
        on_file.delegations.insert(holder, delegated);
        self.files.delegations.fetch_add(1, Ordering::AcqRel);
        Delegation::Granted { stateid, kind, recall: false }
    }

    /// Chooses by policy: none in conflict, none to a client whose last one was recalled just now,
    /// none beyond the bound, none to a client without callbacks.
    fn choose(
        &self,
        now: Duration,
        open: &DelegationRequest<'_>,
        on_file: &FileState,
    ) -> Result<DelegationKind, NoDelegation> {
        let wanted = match open.wanted {
            // A reclaim gets the earlier delegation, or none.
            DelegationClaim::Reclaim(had) => had.ok_or(NoDelegation::NotWanted)?,
            DelegationClaim::New(DelegationWish::None) => return Err(NoDelegation::NotWanted),
            DelegationClaim::New(DelegationWish::Cancel) => return Err(NoDelegation::Cancelled),
            DelegationClaim::New(DelegationWish::Read) => DelegationKind::Read,
            _ if open.access & Share::WRITE != 0 => DelegationKind::Write,
            _ => DelegationKind::Read,
        };
        let reclaims = matches!(open.wanted, DelegationClaim::Reclaim(_));
        let full =
            self.files.delegations.load(Ordering::Acquire) >= self.settings.limits.delegations;
        if !self.settings.delegations || full || !(reclaims || open.client.has_callbacks()) {
            return Err(NoDelegation::Resource);
        }
        let holder = Holder { client: open.client.id, state: 0 };
        let others = match wanted {
            DelegationKind::Read => on_file.shares.is_written(),
            DelegationKind::Write => on_file.shares.others(holder, Share::BOTH),
        };
        let used = others || on_file.by_many_exports;
        let share = match wanted {
            DelegationKind::Read => Share::access(Share::READ),
            DelegationKind::Write => Share::access(Share::BOTH),
        };
        let held = on_file.delegations.of(open.client.id).is_some()
            || on_file.delegations.conflict(Some(open.client.id), share).is_some();
        let tired = !reclaims && on_file.delegations.was_recalled_recently(now, open.client.id);
        let contended = used || held || tired || locked(on_file, open.client, wanted);
        if contended { Err(NoDelegation::Contention) } else { Ok(wanted) }
    }
}
