//! The policy by which delegations are granted (RFC 8881, 10.2 and 10.4).

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use crate::client_state::{ClientState, DelegationState, StateKind, client_of_lock_owner};
use crate::file::{Delegated, File, FileState, Holder};
use crate::sync::atomic::Ordering;
use crate::{Client, DelegationKind, Engine, Grantee, LockType, Principal, Result, Share, Stateid};

/// The delegation that a client would like with an OPEN (`OPEN4_SHARE_ACCESS_WANT_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DelegationWish {
    /// No preference. All clients of minor version 0 have none.
    #[default]
    NoPreference,
    /// A read delegation.
    Read,
    /// A write delegation.
    Write,
    /// A read or a write delegation.
    Any,
    /// No delegation.
    None,
    /// No delegation, and an earlier wish is cancelled.
    Cancel,
}

/// The answer to a client's wish for a delegation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delegation {
    /// A delegation was granted.
    Granted {
        /// Its stateid.
        stateid: Stateid,
        /// The access that it allows.
        kind: DelegationKind,
        /// True if the client must return it at once: the client reclaimed it while another client
        /// waits for it.
        recall: bool,
    },
    /// No delegation was granted.
    Refused(NoDelegation),
}

/// The reason why no delegation was granted (`why_no_delegation4`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoDelegation {
    /// The client did not want a delegation.
    NotWanted,
    /// Other clients use the file, or used it a moment ago.
    Contention,
    /// The server grants no delegations, or none to this client, or no more.
    Resource,
    /// The earlier wish is cancelled.
    Cancelled,
}

/// Returns whether others have locks, or wait for locks, that the holder of a delegation would not
/// see when it locks without asking the server. Locks of NLM belong to no open.
fn locked(on_file: &FileState, client: &Client, kind: DelegationKind) -> bool {
    let kind = match kind {
        DelegationKind::Directory | DelegationKind::Read => LockType::Read,
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
    /// The credentials of the user whose rights were checked, if they were checked.
    pub(crate) user: Option<&'a Arc<Cred<Disk>>>,
    /// The key whose grants allow this OPEN.
    pub(crate) grantee: Option<&'a Arc<Grantee>>,
    /// The access that this OPEN asks for.
    pub(crate) access: u32,
    /// The delegation that is asked for.
    pub(crate) wanted: DelegationClaim,
}

/// The delegation that an OPEN asks for.
#[derive(Clone, Copy)]
pub(crate) enum DelegationClaim {
    /// A new delegation.
    New(DelegationWish),
    /// The delegation that the client had before the server restarted, if it had one.
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
        let kind = match self.choose(now, open, (file, on_file)) {
            Ok(kind) => kind,
            Err(why) => return Delegation::Refused(why),
        };
        let limits = &self.settings.limits;
        let (principal, user) = (open.principal, open.user.cloned());
        let (access, grantee) = (open.access, open.grantee.cloned());
        let what = DelegationState { kind, principal, user, access, grantee };
        let what = StateKind::Delegation(what);
        let Ok(number) = state.holdings.insert(limits, (now, file), what) else {
            return Delegation::Refused(NoDelegation::Resource);
        };
        let stateid = Stateid::new(open.client.id, number, 1);
        let holder = Holder { client: open.client.id, state: number };
        on_file.delegations.insert(holder, Delegated::new(kind, stateid, None));
        self.files.delegations.fetch_add(1, Ordering::AcqRel);
        Delegation::Granted { stateid, kind, recall: false }
    }

    /// Chooses a delegation by policy. There is none if another client conflicts with it, if the
    /// client's last delegation of the file was recalled a moment ago, if the bound is reached, or
    /// if the client has no callback channel.
    fn choose(
        &self,
        now: Duration,
        open: &DelegationRequest<'_>,
        (file, on_file): (&File, &FileState),
    ) -> Result<DelegationKind, NoDelegation> {
        let wanted = match open.wanted {
            // A reclaim gets the kind of delegation that the client had, or none.
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
        let writes = wanted == DelegationKind::Write;
        let others = if writes {
            on_file.shares.others(holder, Share::BOTH)
        } else {
            on_file.shares.is_written()
        };
        let used = others || on_file.by_many_exports;
        let share = Share::access(if writes { Share::BOTH } else { Share::READ });
        let held = on_file.delegations.of(open.client.id).is_some()
            || on_file.delegations.conflict(Some(open.client.id), share).is_some();
        let was_recalled =
            !reclaims && on_file.delegations.was_recalled_recently(now, open.client.id);
        // The holder of a write delegation changes attributes without the server.
        let is_watched = writes && self.is_watched_by_others(file, open.client.id);
        let contended =
            used || held || was_recalled || is_watched || locked(on_file, open.client, wanted);
        if contended { Err(NoDelegation::Contention) } else { Ok(wanted) }
    }
}
