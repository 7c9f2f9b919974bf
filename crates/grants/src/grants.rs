//! The grants of a server, shared by all connections.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use comity_keynote::Rights;
use comity_keys::PublicKey;
use comity_vfs::{BlockingHook, Handle, Result};
use quick_cache::sync::Cache;

use crate::accounts::Accounts;
use crate::ancestry::Ancestry;
use crate::by_creation::ByCreation;
use crate::caller::KeyCaller;
use crate::counters::{GrantCounts, GrantTally};
use crate::creations::Creations;
use crate::decision::Decision;
use crate::evaluate::{self, Question};
use crate::held::Held;
use crate::limits::{DECISION_MILLISECONDS, DECISIONS_DEFAULT, DECISIONS_MAX, SUBMISSIONS_MAX};
use crate::memory::{ListedCredential, Memory};
use crate::policy::Policy;
use crate::record::{Medium, MediumError, Record, Recovered};
use crate::root::Root;
use crate::scene::Scene;
use crate::server_key::ServerKey;
use crate::storage::{ChangeTurn, Storage, Urgency};
use crate::{Moment, ObjectId, Operation};

/// A handle of one byte, which no backend has: it represents an object that no grant names.
const NO_OBJECT: u8 = 0;

/// Returns the current moment by a clock that is never set back, see [`crate::RightsClock`].
pub type TellMoment = Box<dyn Fn() -> Moment + Send + Sync>;

/// The version of the knowledge behind a decision: the number of changes of credentials and
/// accounts, and that of moves between directories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KnownState {
    epoch: u64,
    moves: u64,
}

impl KnownState {
    /// Returns the same after another number of moves.
    pub(crate) const fn after_moves(self, moves: u64) -> Self {
        Self { moves, ..self }
    }
}

/// The grants of a server: the accounts of keys, the submitted credentials, and the revocations.
pub struct Grants {
    clock: TellMoment,
    pub(crate) storage: Storage,
    decisions: usize,
    accounts: RwLock<Arc<Accounts>>,
    /// The current policies of the exports.
    policies: RwLock<Arc<[Arc<Policy>]>>,
    /// The key by which the server signs credentials for creators, if it has one.
    pub(crate) server_key: Option<ServerKey>,
    pub(crate) counters: GrantTally,
    pub(crate) memory: RwLock<Memory>,
    ancestry: Ancestry,
    epoch: AtomicU64,
    /// The outcome of the last submission of a key.
    submissions: Cache<PublicKey, Arc<str>>,
}

impl Grants {
    /// Loads the grants that an earlier run of the server stored. Credentials that have ended or
    /// cannot be read are left out.
    #[must_use]
    pub fn new(clock: TellMoment, medium: Box<dyn Medium>, recovered: Recovered) -> Self {
        let mut memory = Memory::default();
        memory.creations = Creations::recovered(recovered.made);
        recovered.revoked.into_iter().for_each(|one| memory.revocations.insert(one));
        for (holder, text) in recovered.held {
            if let Ok(held) = Held::read(&text) {
                // The limits are those of the earlier run, so a credential that is refused now was
                // not stored by it.
                let _ = memory.insert(holder, &Arc::new(held));
            }
        }
        Self {
            clock,
            storage: Storage::new(medium),
            decisions: DECISIONS_DEFAULT,
            accounts: RwLock::default(),
            policies: RwLock::new(Arc::new([])),
            server_key: None,
            counters: GrantTally::default(),
            memory: RwLock::new(memory),
            ancestry: Ancestry::default(),
            epoch: AtomicU64::new(1),
            submissions: Cache::new(SUBMISSIONS_MAX),
        }
    }

    /// Sets the number of decisions cached for each key, at most [`DECISIONS_MAX`].
    #[must_use]
    pub fn keeping(self, decisions: usize) -> Self {
        Self { decisions: decisions.clamp(1, DECISIONS_MAX), ..self }
    }

    /// Sets the key by which the server signs credentials for creators.
    #[must_use]
    pub fn signing(self, key: ServerKey) -> Self {
        Self { server_key: Some(key), ..self }
    }

    /// Sets the hook that runs changes, because they verify signatures and wait for the disk.
    #[must_use]
    pub fn blocking(mut self, hook: BlockingHook) -> Self {
        self.storage.blocking = hook;
        self
    }

    /// Returns the current moment.
    pub fn now(&self) -> Moment {
        (self.clock)()
    }

    /// The accounts that keys are bound to.
    pub fn accounts(&self) -> Arc<Accounts> {
        Arc::clone(&self.accounts.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of changes of accounts and credentials so far.
    pub fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Replaces the accounts, with immediate effect.
    pub fn bind(&self, accounts: Accounts) {
        *self.accounts.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(accounts);
        self.changed();
    }

    /// Replaces the policies of the exports, with immediate effect.
    pub fn trust(&self, policies: Vec<Arc<Policy>>) {
        let mut place = self.policies.write().unwrap_or_else(PoisonError::into_inner);
        if **place == *policies {
            return;
        }
        *place = policies.into();
        drop(place);
        self.changed();
    }

    /// The current policies of the exports.
    pub(crate) fn policies(&self) -> Arc<[Arc<Policy>]> {
        Arc::clone(&self.policies.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Credentials that expire before a moment, at most `most`, in order of expiry: the moment, the
    /// key that signed it, and the credential.
    pub fn ending(
        &self,
        before: Moment,
        most: usize,
    ) -> Vec<(Moment, PublicKey, ListedCredential)> {
        let memory = self.read();
        let ending = memory.ending(before).take(most);
        ending.map(|(until, key, held)| (until, *held.signer(), memory.listed(key, held))).collect()
    }

    /// Statistics for the metrics page.
    pub fn counts(&self) -> GrantCounts {
        let memory = self.read();
        let sets = || memory.holders().map(|(_, set)| set);
        GrantCounts {
            keys: sets().count() as u64,
            credentials: sets().map(|set| set.len() as u64).sum(),
            credential_bytes: memory.bytes() as u64,
            revocations: memory.revocations.len() as u64,
            creations: memory.creations.len() as u64,
            ..self.counters.totals()
        }
    }

    /// The keys that hold credentials.
    pub fn holders(&self) -> Vec<PublicKey> {
        self.read().holders().map(|(key, _)| *key).collect()
    }

    /// Returns whether credentials are held for a key.
    pub fn is_holder(&self, key: &PublicKey) -> bool {
        self.read().of(key).is_some()
    }

    /// Finds the directories above objects.
    pub const fn ancestry(&self) -> &Ancestry {
        &self.ancestry
    }

    /// The outcome of a key's last submission, if it is remembered.
    pub fn last_submission(&self, key: &PublicKey) -> Option<Arc<str>> {
        self.submissions.get(key)
    }

    pub(crate) fn set_last_submission(&self, key: PublicKey, text: String) {
        self.submissions.insert(key, text.into());
    }

    /// The version of the knowledge behind decisions. While it stays the same, a right can only end
    /// by expiry or because a program on the server moves a file.
    pub fn version(&self) -> KnownState {
        KnownState { epoch: self.epoch(), moves: self.ancestry.moves() }
    }

    pub(crate) const fn decisions_kept(&self) -> usize {
        self.decisions
    }

    /// Puts records on stable storage. After a failure everything is stored again first.
    pub(crate) fn save(
        &self,
        turn: &mut ChangeTurn<'_>,
        urgency: Urgency,
        records: &[Record],
    ) -> std::result::Result<(), MediumError> {
        let now = self.now();
        let known = || {
            let mut known = self.read().records();
            known.push(Record::Seen(now));
            known
        };
        turn.store((now, urgency), known, records)
    }

    /// Stores the creations since the last call. If storing has failed before and the next attempt
    /// is due, everything is stored. Must be called once a second.
    ///
    /// # Errors
    /// The state folder cannot be written; a later call tries again.
    pub fn store_creations(&self) -> std::result::Result<(), MediumError> {
        self.store_what_changed(Urgency::Usual)
    }

    /// The same, without waiting for the next attempt to be due. Must be called when the server
    /// ends.
    ///
    /// # Errors
    /// The state folder cannot be written.
    pub fn store_at_end(&self) -> std::result::Result<(), MediumError> {
        self.store_what_changed(Urgency::AtOnce)
    }

    fn store_what_changed(&self, urgency: Urgency) -> std::result::Result<(), MediumError> {
        self.storage.in_turn(|turn| {
            if urgency == Urgency::Usual && turn.rests(self.now()) {
                return Ok(());
            }
            let records = self.write().creations.take_changes();
            if records.is_empty() && !turn.has_failed() {
                return Ok(());
            }
            self.save(turn, urgency, &records)
        })
    }

    /// The error of the last write to the state folder, if nothing was stored since.
    pub fn storage_failure(&self) -> Option<String> {
        self.storage.failure()
    }

    /// Invalidates all earlier decisions.
    pub(crate) fn changed(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Memory> {
        self.memory.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, Memory> {
        self.memory.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// The objects that a key's credentials name, at most `most`.
    pub(crate) fn objects_of(&self, key: &PublicKey, most: usize) -> Vec<ObjectId> {
        let memory = self.read();
        memory.of(key).iter().flat_map(|set| set.objects()).copied().take(most).collect()
    }

    /// Returns whether a credential of a key names this object itself.
    pub(crate) fn names(&self, key: &PublicKey, object: &Handle) -> bool {
        self.read().of(key).is_some_and(|set| set.names(&ObjectId(*object)))
    }

    /// Returns whether a key may do an operation on an object now because of its credentials.
    ///
    /// # Errors
    /// [`comity_vfs::Status`] if the directories above the object cannot be found.
    pub fn allows(
        &self,
        caller: &KeyCaller,
        scene: &Scene<'_>,
        object: &Handle,
        operation: Operation,
    ) -> Result<bool> {
        let decision = self.grantor(caller, scene, object, operation, self.now())?;
        Ok(decision.grantor.is_some())
    }

    /// Decides by whose grants a key may do an operation.
    ///
    /// # Errors
    /// [`comity_vfs::Status`] if the directories above the object cannot be found.
    pub(crate) fn grantor(
        &self,
        caller: &KeyCaller,
        scene: &Scene<'_>,
        object: &Handle,
        operation: Operation,
        now: Moment,
    ) -> Result<Decision> {
        let until = now.after_milliseconds(DECISION_MILLISECONDS);
        if !self.may_have_rights(caller, scene) {
            return Ok(Decision::denied(until));
        }
        self.counters.query();
        let within = self.ancestry.within(scene.tree, object, now)?;
        let question = Question::new(caller, scene, (object, &within.directories), operation, now);
        Ok(self.first_grantor(scene, &question, until.min(within.until)))
    }

    /// Returns whether a key can have any right through an export: it holds credentials, as
    /// creators do too, or the export has a policy.
    fn may_have_rights(&self, caller: &KeyCaller, scene: &Scene<'_>) -> bool {
        scene.policy.is_some() || self.is_holder(&caller.key)
    }

    /// Decides by whose grants a key may do an operation on any object in a directory, from the
    /// directory alone. Grants for single objects in it are not considered.
    ///
    /// # Errors
    /// As for [`Grants::grantor`].
    pub(crate) fn grantor_below(
        &self,
        caller: &KeyCaller,
        scene: &Scene<'_>,
        dir: &Handle,
        operation: Operation,
        now: Moment,
    ) -> Result<Decision> {
        let until = now.after_milliseconds(DECISION_MILLISECONDS);
        if !self.may_have_rights(caller, scene) {
            return Ok(Decision::denied(until));
        }
        self.counters.query();
        let above = self.ancestry.within(scene.tree, dir, now)?;
        let within = [&[ObjectId(*dir)], &above.directories[..]].concat();
        let any = Handle::new(&[NO_OBJECT])?;
        let question = Question::new(caller, scene, (&any, &within), operation, now);
        Ok(self.first_grantor(scene, &question, until.min(above.until)))
    }

    /// Finds the first account whose grants allow the operation.
    fn first_grantor(
        &self,
        scene: &Scene<'_>,
        question: &Question<'_>,
        mut until: Moment,
    ) -> Decision {
        let (accounts, memory) = (self.accounts(), self.read());
        let candidates = evaluate::candidates(&memory, question);
        let is_by_place = scene.policy.is_none() && candidates.iter().all(|it| it.is_canonical);
        let mut is_first = true;
        for root in Root::all(&candidates, &accounts, (scene, question.caller)) {
            let usable = evaluate::usable(&candidates, &memory.revocations, &root);
            let (rights, holds_until) = evaluate::rights(&usable, &root, question);
            until = until.min(holds_until);
            if question.operation.is_allowed(rights) {
                let same_for_all = is_first && !question.reads_operation();
                let rights = if same_for_all { rights } else { Rights::NONE };
                let grantor = Some(Arc::clone(root.account()));
                return Decision { grantor, rights, until, is_by_place };
            }
            is_first &= rights.is_none();
        }
        let server = self.server_key.as_ref().map(ServerKey::public);
        let by_creation = ByCreation { memory: &memory, accounts: &accounts, server };
        let Some(found) = by_creation.first(scene, question) else {
            return Decision::denied(until);
        };
        let (grantor, until) = (Some(Arc::clone(found.root.account())), until.min(found.until));
        Decision { grantor, rights: Rights::NONE, until, is_by_place: false }
    }

    /// The credentials that a key holds.
    pub fn held_by(&self, key: &PublicKey) -> Vec<ListedCredential> {
        let memory = self.read();
        let held = memory.of(key).into_iter().flat_map(|set| set.iter());
        held.map(|held| memory.listed(*key, held)).collect()
    }

    /// The credentials that a key signed.
    pub fn signed_by(&self, key: &PublicKey) -> Vec<ListedCredential> {
        let memory = self.read();
        memory.signed_by(key).map(|(holder, held)| memory.listed(*holder, held)).collect()
    }
}
