//! A key that holds credentials, with its address and cached decisions.

use std::hash::BuildHasher;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use comity_keynote::Rights;
use comity_keys::PublicKey;
use comity_vfs::{Cred, Disk, FileKey, Handle, Result};
use foldhash::fast::RandomState;

use crate::accounts::Account;
use crate::ancestry::Glance;
use crate::caller::KeyCaller;
use crate::decision::Decision;
use crate::grants::Grants;
use crate::kept_decisions::{Below, Decisions, KNOWS_BELOW, KeptDecision, Pass, SEES_ALL_BELOW};
use crate::limits::GRANTORS_PER_KEY_MAX;
use crate::scene::Scene;
use crate::ways::{self, Ways};
use crate::{Moment, Operation};

/// A principal: a key without an account that acts by the rights granted to it.
///
/// Decisions are cached in a table of fixed size, in which each object has one slot, so that a
/// cached decision is found with one access.
pub struct Holder {
    grants: Arc<Grants>,
    caller: KeyCaller,
    /// The counter for hits of its cache.
    lane: usize,
    decisions: Box<[Mutex<Decisions>]>,
    /// Chooses the slot of an object. A key that finds two objects of one slot only slows itself
    /// down.
    hasher: RandomState,
    grantors: [OnceLock<Arc<Account>>; GRANTORS_PER_KEY_MAX],
    ways: Mutex<Ways>,
}

impl Holder {
    /// Makes a holder from a key and an address, with an empty cache.
    #[must_use]
    pub fn new(grants: &Arc<Grants>, key: PublicKey, address: IpAddr) -> Self {
        Self::of(grants, KeyCaller::new(key, address))
    }

    /// Makes a holder from a caller, with an empty cache.
    #[must_use]
    pub fn of(grants: &Arc<Grants>, caller: KeyCaller) -> Self {
        Self {
            grants: Arc::clone(grants),
            caller,
            lane: grants.counters.lane(),
            decisions: (0..grants.decisions_kept()).map(|_| Mutex::default()).collect(),
            hasher: RandomState::default(),
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

    /// The grants by which it acts.
    #[must_use]
    pub const fn grants(&self) -> &Arc<Grants> {
        &self.grants
    }

    /// The credential under which the key may do an operation on an object now; `None` if it may
    /// not.
    ///
    /// # Errors
    /// [`comity_vfs::Status::Stale`] if the object no longer exists; [`comity_vfs::Status`] if the
    /// directories above the object cannot be found.
    pub fn pass(
        &self,
        scene: &Scene<'_>,
        object: &Handle,
        operation: Operation,
    ) -> Result<Option<&Cred<Disk>>> {
        self.grantor(scene, object, operation).map(|grantor| grantor.map(|it| &it.cred))
    }

    /// The account under whose ids the key may do an operation on an object now.
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

    /// Returns whether the key may know of all objects in a directory, from the directory alone.
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

    /// Returns whether the directory alone shows that each object in it is visible to the key,
    /// whichever object it is. If it returns false, each object must be asked about.
    ///
    /// # Errors
    /// As for [`Holder::pass`].
    pub fn sees_all_below(&self, scene: &Scene<'_>, dir: &Handle) -> Result<bool> {
        let decide = |now| {
            let look = Operation::Look;
            let decision = self.grants.grantor_below(&self.caller, scene, dir, look, now)?;
            // A condition of an administrator or of an unusual credential may name an object.
            let grantor = decision.grantor.clone().filter(|_| decision.is_by_place);
            Ok(self.kept(&Decision { grantor, rights: Rights::NONE, ..decision }))
        };
        Ok(matches!(self.decided(scene, dir, SEES_ALL_BELOW, decide)?, Pass::Granted(_)))
    }

    /// The decision of number `at` about an object: a cached one, or a new one.
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

    /// Remembers the name by which a look-up that began at `before` found a file with one link, as
    /// [`crate::Ancestry::met_single`] does.
    pub fn found_single(
        &self,
        scene: &Scene<'_>,
        before: Glance,
        object: &Handle,
        (dir, name): (&Handle, &[u8]),
    ) {
        let file = (scene.tree.key)(object);
        let seen = (self.grants.version().after_moves(before.moves), before.now);
        let place = self.hasher.hash_one((dir, name));
        let is_new = self
            .slot(&file)
            .is_none_or(|mut slot| slot.found_by((scene.number, file), seen, place));
        if is_new {
            self.grants.ancestry().met_single(before, &file, (dir, name));
        }
    }

    /// Returns whether the key may do an operation on all objects in a directory, from the
    /// directory alone.
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

    /// Decides about an operation, and until when the decision is valid.
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

    /// Converts a decision to the form in which it is cached.
    fn kept(&self, decision: &Decision) -> KeptDecision {
        let place = decision.grantor.as_ref().and_then(|grantor| self.place_of(grantor));
        let pass = place.map_or(Pass::Denied, Pass::Granted);
        KeptDecision { pass, rights: decision.rights, until: decision.until }
    }

    /// The account that granted an object below this directory, so that the key may pass through
    /// it.
    fn way(&self, scene: &Scene<'_>, dir: &Handle, now: Moment) -> Option<Arc<Account>> {
        let file = (scene.tree.key)(dir);
        let known = self.ways().known(scene.number, self.grants.version(), now);
        let directories = match known {
            Some(directories) => directories,
            // The lock is not held while the file system is asked, so that other threads can
            // continue.
            None => {
                let found = Arc::new(ways::find(&self.grants, &self.caller, scene, now));
                self.ways().keep(scene.number, self.grants.version(), now, &found);
                found
            }
        };
        directories.get(&file).cloned()
    }

    /// The index of a grantor in the table; `None` if the table is full.
    fn place_of(&self, grantor: &Arc<Account>) -> Option<u8> {
        let is_here = |place: &OnceLock<_>| place.get_or_init(|| Arc::clone(grantor)) == grantor;
        self.grantors.iter().position(is_here).map(|place| place as u8)
    }

    fn ways(&self) -> MutexGuard<'_, Ways> {
        self.ways.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The decision that allows an operation on an object because of its directory; `None` if
    /// another evaluation is needed.
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
        if self.grants.names(&self.caller.key, object) {
            return Ok(None);
        }
        let below = self.below(scene, (&dir, object), now)?;
        let allowed = below.filter(|below| operation.is_allowed(below.rights));
        Ok(allowed.map(|below| KeptDecision { until: below.until.min(until), ..below }))
    }

    /// The decision for all objects in a directory, if it is the same for all of them.
    fn below(
        &self,
        scene: &Scene<'_>,
        (dir, object): (&Handle, &Handle),
        now: Moment,
    ) -> Result<Option<KeptDecision>> {
        let asked = self.hasher.hash_one((scene.tree.key)(object));
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

    /// The slot for decisions about a file, if the cache has any.
    fn slot(&self, file: &FileKey) -> Option<MutexGuard<'_, Decisions>> {
        let hash = self.hasher.hash_one(file);
        let slot = self.decisions.get((hash as usize).checked_rem(self.decisions.len())?)?;
        Some(slot.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
