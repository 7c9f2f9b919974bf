//! A key that holds credentials, at one address, and what was decided about it.

use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use comity_keynote::Rights;
use comity_keys::PublicKey;
use comity_vfs::{Cred, Disk, FileKey, Handle, Result};

use crate::accounts::Account;
use crate::caller::KeyCaller;
use crate::decision::Decision;
use crate::grants::Grants;
use crate::kept_decisions::{Below, Decisions, KNOWS_BELOW, KeptDecision, Pass, hash_of};
use crate::limits::GRANTORS_PER_KEY_MAX;
use crate::scene::Scene;
use crate::ways::{self, Ways};
use crate::{Moment, Operation};

/// A principal: a key without an account that acts by the rights granted to it.
///
/// Decisions are kept in a table of fixed size: each object has one place in it, so a decision
/// that is known costs one load of an array.
pub struct Holder {
    grants: Arc<Grants>,
    caller: KeyCaller,
    /// The counter of its decisions that were known already.
    lane: usize,
    decisions: Box<[Mutex<Decisions>]>,
    grantors: [OnceLock<Arc<Account>>; GRANTORS_PER_KEY_MAX],
    ways: Mutex<Ways>,
}

impl Holder {
    /// A key at an address, with no decision about it yet.
    #[must_use]
    pub fn new(grants: &Arc<Grants>, key: PublicKey, address: IpAddr) -> Self {
        Self::of(grants, KeyCaller::new(key, address))
    }

    /// A caller, with no decision about it yet.
    #[must_use]
    pub fn of(grants: &Arc<Grants>, caller: KeyCaller) -> Self {
        Self {
            grants: Arc::clone(grants),
            caller,
            lane: grants.counters.lane(),
            decisions: (0..grants.decisions_kept()).map(|_| Mutex::default()).collect(),
            grantors: [const { OnceLock::new() }; GRANTORS_PER_KEY_MAX],
            ways: Mutex::default(),
        }
    }

    /// The key.
    #[must_use]
    pub const fn key(&self) -> &PublicKey {
        &self.caller.key
    }

    /// The key and its address.
    #[must_use]
    pub const fn caller(&self) -> &KeyCaller {
        &self.caller
    }

    /// The grants that it acts by.
    #[must_use]
    pub const fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    /// The ids under which the key may do an operation to an object now; `None` if it may not.
    ///
    /// # Errors
    /// [`comity_vfs::Status::Stale`] if the object is gone; [`comity_vfs::Status`] if it cannot be
    /// found out what the object lies below.
    pub fn pass(
        &self,
        scene: &Scene<'_>,
        object: &Handle,
        operation: Operation,
    ) -> Result<Option<&Cred<Disk>>> {
        self.grantor(scene, object, operation).map(|grantor| grantor.map(|it| &it.cred))
    }

    /// The account under whose ids the key may do an operation to an object now.
    ///
    /// # Errors
    /// As for [`Holder::pass`].
    pub fn grantor(
        &self,
        scene: &Scene<'_>,
        object: &Handle,
        operation: Operation,
    ) -> Result<Option<&Account>> {
        let decide = |now| self.decide(scene, object, operation, now);
        let pass = self.decided(scene, object, operation as usize, decide)?;
        let Pass::Granted(place) = pass else { return Ok(None) };
        Ok(self.grantors.get(usize::from(place)).and_then(OnceLock::get).map(|it| &**it))
    }

    /// Returns whether the key may know of whatever is in a directory, by the directory alone.
    ///
    /// # Errors
    /// As for [`Holder::pass`].
    pub fn knows_below(&self, scene: &Scene<'_>, dir: &Handle) -> Result<bool> {
        let decide = |now| {
            let look = Operation::Look;
            let decision = self.grants.grantor_below(&self.caller, scene, dir, look, now)?;
            Ok(self.kept(&Decision { rights: Rights::NONE, ..decision }))
        };
        Ok(matches!(self.decided(scene, dir, KNOWS_BELOW, decide)?, Pass::Granted(_)))
    }

    /// The decision at a place of those about an object: the one that is known, or a new one.
    fn decided(
        &self,
        scene: &Scene<'_>,
        object: &Handle,
        at: usize,
        decide: impl FnOnce(Moment) -> Result<KeptDecision>,
    ) -> Result<Pass> {
        let (now, version) = (self.grants.now(), self.grants.version());
        let file = (scene.number, (scene.tree.key)(object));
        let known = self.slot(&file.1).map(|slot| slot.known(&file, version, now, at));
        match known.unwrap_or(Pass::Unknown) {
            Pass::Unknown => {
                let kept = decide(now)?;
                if let Some(mut slot) = self.slot(&file.1) {
                    slot.keep(file, (version, now), at, kept);
                }
                Ok(kept.pass)
            }
            pass => {
                self.grants.counters.hit(self.lane);
                Ok(pass)
            }
        }
    }

    /// Returns whether the key may do an operation to whatever is in a directory, by the directory
    /// alone.
    ///
    /// # Errors
    /// As for [`Holder::pass`].
    pub fn passes_below(
        &self,
        scene: &Scene<'_>,
        dir: &Handle,
        operation: Operation,
    ) -> Result<bool> {
        let now = self.grants.now();
        let decision = self.grants.grantor_below(&self.caller, scene, dir, operation, now)?;
        Ok(decision.grantor.is_some())
    }

    /// Decides about an operation, and until when that holds.
    fn decide(
        &self,
        scene: &Scene<'_>,
        object: &Handle,
        operation: Operation,
        now: Moment,
    ) -> Result<KeptDecision> {
        if let Some(kept) = self.by_directory(scene, object, operation, now)? {
            return Ok(kept);
        }
        let decision = self.grants.grantor(&self.caller, scene, object, operation, now)?;
        let leads = || match operation {
            Operation::Look | Operation::Search | Operation::Read => self.way(scene, object, now),
            _ => None,
        };
        let grantor = decision.grantor.or_else(leads);
        Ok(self.kept(&Decision { grantor, ..decision }))
    }

    /// A decision as it is kept.
    fn kept(&self, decision: &Decision) -> KeptDecision {
        let place = decision.grantor.as_ref().and_then(|grantor| self.place_of(grantor));
        let pass = place.map_or(Pass::Denied, Pass::Granted);
        KeptDecision { pass, rights: decision.rights, until: decision.until }
    }

    /// The account that has granted something to which a directory leads.
    fn way(&self, scene: &Scene<'_>, dir: &Handle, now: Moment) -> Option<Arc<Account>> {
        let file = (scene.tree.key)(dir);
        let known = self.ways().known(scene.number, self.grants.version(), now);
        let directories = match known {
            Some(directories) => directories,
            // The lock is not held while the file system is asked: others ask it meanwhile, too.
            None => {
                let found = Arc::new(ways::find(&self.grants, &self.caller, scene, now));
                self.ways().keep(scene.number, self.grants.version(), now, &found);
                found
            }
        };
        directories.get(&file).cloned()
    }

    /// The place at which a grantor stands; `None` if there is no place left.
    fn place_of(&self, grantor: &Arc<Account>) -> Option<u8> {
        let is_here = |place: &OnceLock<_>| place.get_or_init(|| Arc::clone(grantor)) == grantor;
        self.grantors.iter().position(is_here).map(|place| place as u8)
    }

    fn ways(&self) -> MutexGuard<'_, Ways> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The decision that allows an operation to an object because of its directory; `None` if
    /// another evaluation has to tell.
    ///
    /// # Errors
    /// As for [`Holder::pass`].
    fn by_directory(
        &self,
        scene: &Scene<'_>,
        object: &Handle,
        operation: Operation,
        now: Moment,
    ) -> Result<Option<KeptDecision>> {
        let place = self.grants.ancestry().only_directory(scene.tree, object, now)?;
        let Some((dir, until)) = place else { return Ok(None) };
        if self.grants.speaks_of(&self.caller.key, object) {
            return Ok(None);
        }
        let below = self.below(scene, (&dir, object), now)?;
        let allowed = below.filter(|below| operation.is_allowed(below.rights));
        Ok(allowed.map(|below| KeptDecision { until: below.until.min(until), ..below }))
    }

    /// The decision for what is in a directory, if it is the same for all of that.
    fn below(
        &self,
        scene: &Scene<'_>,
        (dir, object): (&Handle, &Handle),
        now: Moment,
    ) -> Result<Option<KeptDecision>> {
        let asked = hash_of(&(scene.tree.key)(object));
        let (version, file) = (self.grants.version(), (scene.number, (scene.tree.key)(dir)));
        let known =
            self.slot(&file.1).map(|mut slot| slot.asked_below(file, (version, now), asked));
        match known {
            Some(Below::Known(kept)) => return Ok(Some(kept)),
            Some(Below::Asked(other)) if other != asked => {}
            _ => return Ok(None),
        }
        let look = Operation::Look;
        let decision = self.grants.grantor_below(&self.caller, scene, dir, look, now)?;
        let kept = self.kept(&decision);
        let holds = decision.is_by_place && kept.pass != Pass::Denied;
        let below = if holds { Below::Known(kept) } else { Below::Apart };
        if let Some(mut slot) = self.slot(&file.1) {
            slot.claim(file, (version, now), kept.until).below = below;
        }
        Ok(holds.then_some(kept))
    }

    /// Decisions about a file are kept here, if any are kept.
    fn slot(&self, file: &FileKey) -> Option<MutexGuard<'_, Decisions>> {
        let hash = hash_of(file);
        let slot = self.decisions.get((hash as usize).checked_rem(self.decisions.len())?)?;
        Some(slot.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
