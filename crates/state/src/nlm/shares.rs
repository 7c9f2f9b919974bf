//! NLM_SHARE and NLM_UNSHARE: share reservations of DOS.

use std::sync::Arc;
use std::time::Duration;

use super::locks::LockRequestKind;
use crate::client_state::{ClientState, OpenState, Owner, OwnerKind, StateKind};
use crate::courtesy::Obstacle;
use crate::file::{File, Holder};
use crate::lookup::forget_opener;
use crate::{Client, Engine, FileKey, Limits, Principal, Result, Share};

impl Engine {
    /// NLM_SHARE: a share reservation of DOS.
    ///
    /// # Errors
    /// [`crate::Error::ShareDenied`]; the errors of [`Engine::lock_host`].
    pub fn share_host(
        &self,
        now: Duration,
        host: &Arc<Client>,
        (name, key): (&[u8], FileKey),
        share: Share,
        request_kind: LockRequestKind,
    ) -> Result<()> {
        let is_held = || self.has_shared(host, (name, &key), share);
        self.may_lock_host(now, host, (&key, is_held), request_kind)?;
        self.break_delegations(now, Some(host), &key, share)?;
        let file = self.file(&key)?;
        let shared = self.unless_expired(now, || self.try_share(now, host, (name, &file), share));
        if shared.is_err() {
            forget_opener(host, name);
        }
        self.files.let_go(now, &file);
        shared
    }

    /// Returns whether an owner has this share reservation.
    fn has_shared(&self, host: &Client, (name, key): (&[u8], &FileKey), share: Share) -> bool {
        let state = host.state();
        let owner = state.holdings.find_owner(OwnerKind::Open, name);
        let Some((owner, file)) = owner.zip(self.files.get(key)) else { return false };
        let number = state.holdings.find(owner, &file);
        let known = number.and_then(|number| state.holdings.opening(number).ok());
        known.is_some_and(|known| known.share == share)
    }

    fn try_share(
        &self,
        now: Duration,
        host: &Arc<Client>,
        (name, file): (&[u8], &Arc<File>),
        share: Share,
    ) -> Result<(), Obstacle> {
        let limits = &self.settings.limits;
        let mut state = host.live()?;
        let owner = host_owner(&mut state, limits, now, (OwnerKind::Open, name))?;
        let known = state.holdings.find(owner, file);
        let mut on_file = file.state();
        let holder = known.map(|state| Holder { client: host.id, state });
        if let Some(other) = on_file.shares.conflict(holder, share) {
            return Err(Obstacle::Share(other));
        }
        let number = match known {
            Some(number) => {
                state.holdings.share(number, share);
                number
            }
            None => {
                let what = StateKind::Open(OpenState {
                    owner,
                    share,
                    user: None,
                    opened: 0,
                    closed: false,
                    shared: false,
                    grantee: None,
                });
                state.holdings.insert(limits, (now, file), what)?
            }
        };
        state.holdings.asked(number, host.monitor_state());
        self.set_share(&mut on_file, Holder { client: host.id, state: number }, Some(share));
        Ok(())
    }

    /// NLM_UNSHARE.
    pub fn unshare_host(&self, now: Duration, host: &Arc<Client>, (name, key): (&[u8], FileKey)) {
        let mut state = host.state();
        let Some(owner) = state.holdings.find_owner(OwnerKind::Open, name) else { return };
        let Some(file) = self.files.get(&key) else { return };
        let Some(number) = state.holdings.find(owner, &file) else { return };
        let Some(open) = state.holdings.remove(number) else { return };
        state.holdings.forget_idle(owner);
        drop(state);
        let holder = Holder { client: host.id, state: number };
        self.release_state(now, holder, &open, &mut Vec::new());
    }
}

/// Returns an owner of a host, and adds it if it is unknown.
pub(crate) fn host_owner(
    state: &mut ClientState,
    limits: &Limits,
    now: Duration,
    (kind, name): (OwnerKind, &[u8]),
) -> Result<u32> {
    match state.holdings.find_owner(kind, name) {
        Some(number) => Ok(number),
        None => {
            let owner = Owner::sequenced(now, kind, (name, Principal::default()));
            state.holdings.add_owner(limits, owner)
        }
    }
}
