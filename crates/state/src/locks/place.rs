//! The open and the lock-owner to which a lock belongs.

use super::lock_ops::{Lock, Locker};
use crate::client_state::{ClientState, LockState, OwnerKind, StateKind};
use crate::lookup::{Found, confirmed};
use crate::{Error, Result, Sender};

/// The open and the lock-owner of a lock.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    /// The number of the state that the request named; it refers to the file.
    pub(crate) named: u32,
    pub(crate) open: u32,
    pub(crate) owner: Option<u32>,
    pub(crate) lock: Option<u32>,
}

/// Checks the stateid of the request; returns the open and the lock-owner of the lock.
pub(crate) fn lock_place(
    sender: &Sender<'_>,
    found: &Found<'_>,
    state: &mut ClientState,
    args: &Lock<'_>,
) -> Result<Place> {
    let (named, shown) = (found.number, (sender, &args.file));
    match args.locker {
        Locker::Known { lock } => {
            let it = found.current(state, shown, &lock)?;
            let StateKind::Lock(LockState { owner, open, .. }) = it.what else {
                return Err(Error::BadStateid);
            };
            Ok(Place { named, open, owner: Some(owner), lock: Some(named) })
        }
        Locker::New { open, owner, seqid } => {
            confirmed(found, state, shown, &open)?;
            let owner = state.holdings.find_owner(OwnerKind::Lock, owner);
            if sender.is_unsequenced() {
                let known = owner.and_then(|owner| state.holdings.owner(owner));
                if known.is_some_and(|known| known.states > 0 && !known.is_next(seqid)) {
                    return Err(Error::BadSeqid);
                }
            }
            let lock = owner.and_then(|owner| state.holdings.find_lock(owner, named));
            Ok(Place { named, open: named, owner, lock })
        }
    }
}
