//! OPEN: share reservations, upgrades, and claims (RFC 8881, 18.16).

use std::sync::Arc;
use std::time::Duration;

use comity_vfs::{Cred, Disk};

use crate::client_state::{ClientState, OpenState, Owner, OwnerKind, StateKind};
use crate::courtesy::Obstacle;
use crate::delegations::{DelegationClaim, DelegationRequest};
use crate::file::{File, FileState, Holder};
use crate::lookup::forget_opener;
use crate::sync::MutexGuard;
use crate::{
    Caller, Client, ClientProtocol, Delegation, DelegationKind, DelegationWish, Engine, Error,
    FileKey, Grantee, Result, Sender, Share, Stateid,
};

/// The arguments of OPEN, with the file already found.
#[derive(Debug, Clone, Copy)]
pub struct Open<'a> {
    /// The client. In minor version 0 it comes from [`Engine::client_of`].
    pub client: &'a Arc<Client>,
    /// The principal and the origin of the call.
    pub caller: Caller,
    /// The open-owner.
    pub owner: &'a [u8],
    /// The file.
    pub file: FileKey,
    /// The access and the deny mode.
    pub share: Share,
    /// The right by which the client opens the file.
    pub claim: Claim,
    /// The delegation that the client wishes.
    pub wish: DelegationWish,
    /// The credentials of the user, if its right to open the file was checked.
    pub user: Option<&'a Arc<Cred<Disk>>>,
    /// The key whose grants allow the OPEN, if the caller acts by grants ([`Engine::end_rights`]).
    pub grantee: Option<&'a Arc<Grantee>>,
    /// True if the OPEN truncates the file to zero, whatever access it asks for.
    pub empties: bool,
}

/// The right by which a client opens a file (`open_claim_type4`). Claims by name and by filehandle
/// are not distinguished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// A new open (`CLAIM_NULL`, `CLAIM_FH`).
    New,
    /// A reclaim: the file was open before the restart, with this delegation (`CLAIM_PREVIOUS`).
    Previous(Option<DelegationKind>),
    /// The client has opened the file locally under this delegation (`CLAIM_DELEGATE_CUR`,
    /// `CLAIM_DELEG_CUR_FH`).
    Delegated(Stateid),
}

/// The results of OPEN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Opened {
    /// The stateid of the open.
    pub stateid: Stateid,
    /// True if the owner has to confirm it (`OPEN4_RESULT_CONFIRM`).
    pub confirm: bool,
    /// The delegation, or the reason why there is none.
    pub delegation: Delegation,
    /// The earlier share of the open, if the owner already had the file open.
    pub before: Option<Before>,
}

/// The share of an open before another OPEN extended it ([`Engine::withdraw_open`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Before {
    seqid: u32,
    share: Share,
    opened: u16,
}

impl Engine {
    /// Checks that an OPEN with this claim is accepted now in an export. It is called before the
    /// file is looked up.
    ///
    /// # Errors
    /// [`Error::Grace`], [`Error::NoGrace`], [`Error::ReclaimBad`].
    pub fn may_claim(&self, client: &Client, export: u32, reclaims: bool) -> Result<()> {
        let complete = client.live()?.reclaim_complete;
        let is_in_grace = self.is_in_grace_at(export);
        if reclaims {
            // A client that has completed may yet reclaim in an export that came here later.
            let may = is_in_grace && !(complete && self.is_in_grace());
            return if may { Ok(()) } else { Err(Error::NoGrace) };
        }
        let waits = client.protocol == ClientProtocol::ExchangeId && !complete;
        if is_in_grace || waits { Err(Error::Grace) } else { Ok(()) }
    }

    /// OPEN of a file that was already looked up.
    ///
    /// # Errors
    /// [`Error::ShareDenied`]. [`Error::Delay`]: a delegation is being recalled, or a layout for a
    /// truncation. [`Error::Grace`], [`Error::NoGrace`], [`Error::ReclaimBad`],
    /// [`Error::ReclaimConflict`]. [`Error::Inval`], [`Error::Resource`]. The errors of an invalid
    /// stateid.
    pub fn open(&self, now: Duration, open: &Open<'_>) -> Result<Opened> {
        if !open.share.is_valid() {
            return Err(Error::Inval);
        }
        self.check_claim(now, open)?;
        let file = self.file(&open.file)?;
        let cleared = match open.empties {
            true => self.recall_layouts_if(now, Some(open.client), &open.file, &|| true),
            false => Ok(()),
        };
        let opened =
            cleared.and_then(|()| self.unless_expired(now, || self.try_open(now, open, &file)));
        match &opened {
            Ok(_) => open.client.renew_unsequenced(now),
            Err(_) => forget_opener(open.client, open.owner),
        }
        self.files.let_go(now, &file);
        match (opened, open.claim) {
            (Err(Error::ShareDenied | Error::Delay), Claim::Previous(_)) => {
                Err(Error::ReclaimConflict)
            }
            (opened, _) => opened,
        }
    }

    fn check_claim(&self, now: Duration, open: &Open<'_>) -> Result<()> {
        match open.claim {
            Claim::New => self.may_claim(open.client, open.file.export, false),
            Claim::Previous(_) => {
                self.may_claim(open.client, open.file.export, true)?;
                self.may_reclaim(now, (open.client, false), &open.file)
            }
            Claim::Delegated(stateid) => {
                let sender = Sender { caller: open.caller, ..Sender::of(now, open.client) };
                self.check_delegation(sender, &stateid, &open.file, open.share)
            }
        }
    }

    fn try_open(
        &self,
        now: Duration,
        open: &Open<'_>,
        file: &Arc<File>,
    ) -> Result<Opened, Obstacle> {
        let mut state = open.client.live()?;
        let owner = self.opener(now, &mut state, open)?;
        let mut on_file = file.state();
        let known = state.holdings.find(owner, file);
        let (share, mine) = (open.against(), file.covered(&open.file, Some(open.client.id)));
        // A deny mode also applies to its own owner (RFC 7530, 16.16.5).
        if let Some(other) = on_file.shares.conflict(None, share) {
            return Err(Obstacle::Share(other));
        }
        if let Some(other) = on_file.delegations.conflict(mine, share) {
            self.recall(now, file, &mut on_file, (mine, share));
            return Err(Obstacle::Delegation(other));
        }
        on_file.by_many_exports |= open.file.export != file.key.export;
        let shared = state.borrows(open.client, &open.caller, owner);
        let (stateid, before) = match known {
            Some(number) => upgrade(open, &mut state, (number, shared))?,
            None => {
                let (user, share) = (open.user.cloned(), open.share);
                let (opened, closed, grantee) = (0, false, None);
                let opening = OpenState { owner, share, user, opened, closed, shared, grantee };
                let limits = &self.settings.limits;
                let number =
                    state.holdings.insert(limits, (now, file), StateKind::Open(opening))?;
                note(&mut state, number, share);
                (Stateid::new(open.client.id, number, 1), None)
            }
        };
        self.settle(now, open, file, (state, on_file), (owner, stateid, before))
    }

    /// Completes an open: counts its share, and grants a delegation if the policy allows it.
    fn settle(
        &self,
        now: Duration,
        open: &Open<'_>,
        file: &Arc<File>,
        (mut state, mut on_file): (MutexGuard<'_, ClientState>, MutexGuard<'_, FileState>),
        (owner, stateid, before): (u32, Stateid, Option<Before>),
    ) -> Result<Opened, Obstacle> {
        let number = state.holdings.number_of(open.client.id, stateid.name()?);
        let number = number.ok_or(Error::BadStateid)?;
        let holder = Holder { client: open.client.id, state: number };
        if let Some(grantee) = open.grantee {
            state.holdings.rest_open_on(number, grantee);
            open.client.note_grantees(&state);
        }
        let share = state.holdings.get(number).and_then(|state| match &state.what {
            StateKind::Open(opening) => Some(opening.share),
            _ => None,
        });
        self.set_share(&mut on_file, holder, share);
        let confirmed = state.holdings.owner_mut(owner).is_some_and(|owner| {
            owner.confirmed |= matches!(open.claim, Claim::Previous(_));
            owner.confirmed
        });
        let delegation = if confirmed {
            self.delegate(now, &open.delegation(), file, (&mut state, &mut on_file))
        } else {
            Delegation::Refused(crate::NoDelegation::Resource)
        };
        Ok(Opened { stateid, confirm: !confirmed, delegation, before })
    }

    /// Takes back an OPEN that was not answered yet. The open gets its earlier share, or ends, and
    /// a delegation granted with it is taken back. It does nothing if the open has changed
    /// meanwhile.
    pub fn withdraw_open(
        &self,
        now: Duration,
        (client, file): (&Arc<Client>, &FileKey),
        opened: &Opened,
    ) {
        if let Delegation::Granted { stateid, .. } = opened.delegation {
            let sender = Sender::of(now, client);
            // The delegation was granted a moment ago, so the client cannot have returned it.
            let _ = self.delegreturn((sender, file), &stateid);
        }
        let Ok(name) = opened.stateid.name() else { return };
        let mut state = client.state();
        let Some(number) = state.holdings.number_of(client.id, name) else { return };
        let holder = Holder { client: client.id, state: number };
        let known = state.holdings.get_mut(number);
        let Some(known) = known.filter(|known| known.seqid == opened.stateid.seqid) else { return };
        let StateKind::Open(opening) = &mut known.what else { return };
        if let Some(before) = opened.before {
            (opening.share, opening.opened) = (before.share, before.opened);
            known.seqid = before.seqid;
            self.set_share(&mut known.file.state(), holder, Some(before.share));
            return;
        }
        let owner = opening.owner;
        let withdrawn = state.holdings.remove(number);
        if client.protocol != ClientProtocol::Setclientid {
            state.holdings.forget_idle(owner);
        }
        drop(state);
        let withdrawn = withdrawn.into_iter();
        withdrawn.for_each(|open| self.release_state(now, holder, &open, &mut Vec::new()));
    }

    fn opener(&self, now: Duration, state: &mut ClientState, open: &Open<'_>) -> Result<u32> {
        match state.holdings.find_owner(OwnerKind::Open, open.owner) {
            Some(owner) => Ok(owner),
            None => {
                let named = (open.owner, open.caller.principal);
                let owner = Owner::sequenced(now, OwnerKind::Open, named);
                state.holdings.add_owner(&self.settings.limits, owner)
            }
        }
    }
}

/// Adds a share to an open.
fn upgrade(
    open: &Open<'_>,
    state: &mut ClientState,
    (number, shared): (u32, bool),
) -> Result<(Stateid, Option<Before>), Error> {
    let known = state.holdings.get_mut(number).ok_or(Error::BadStateid)?;
    let StateKind::Open(opening) = &mut known.what else { return Err(Error::BadStateid) };
    let OpenState { share, opened, .. } = *opening;
    let before = Before { seqid: known.seqid, share, opened };
    opening.opened |= open.share.bit();
    opening.shared |= shared;
    opening.share = share.and(open.share);
    opening.user = opening.user.take().filter(|user| open.user == Some(user));
    Ok((state.holdings.change(open.client.id, number)?, Some(before)))
}

impl Open<'_> {
    /// Returns the delegation that this OPEN asks for. An open under a delegation asks for no
    /// other.
    fn delegation(&self) -> DelegationRequest<'_> {
        let wanted = match (self.claim, self.wish) {
            (Claim::Previous(had), _) => DelegationClaim::Reclaim(had),
            (Claim::Delegated(_), wish) if wish != DelegationWish::Cancel => {
                DelegationClaim::New(DelegationWish::None)
            }
            (_, wish) => DelegationClaim::New(wish),
        };
        let (principal, access) = (self.caller.principal, self.share.access);
        let (client, user, grantee) = (self.client, self.user, self.grantee);
        DelegationRequest { client, principal, user, grantee, access, wanted }
    }

    /// Returns the share that must not conflict with others. Truncation counts as writing.
    const fn against(&self) -> Share {
        let writes = if self.empties { Share::WRITE } else { 0 };
        self.share.and(Share::access(writes))
    }
}

/// Notes that a file was opened with this share.
fn note(state: &mut ClientState, number: u32, share: Share) {
    if let Some(StateKind::Open(opening)) =
        state.holdings.get_mut(number).map(|open| &mut open.what)
    {
        opening.opened |= share.bit();
    }
}
