//! The decisions that are kept for a key, by their objects.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use comity_keynote::Rights;
use comity_vfs::FileKey;

use crate::grants::KnownState;
use crate::limits::DECISION_MILLISECONDS;
use crate::{Moment, Operation};

/// The place of the decision about what is in a directory, behind those about operations.
pub(crate) const KNOWS_BELOW: usize = Operation::ALL.len();

/// The decisions about one object.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    object: Option<(u32, FileKey)>,
    version: KnownState,
    until: Moment,
    passes: [Pass; KNOWS_BELOW + 1],
    pub(crate) below: Below,
}

/// A decision about an operation, and what it says about others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptDecision {
    pub(crate) pass: Pass,
    /// The rights by which the same holds for other operations.
    pub(crate) rights: Rights,
    pub(crate) until: Moment,
}

/// A decision about one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pass {
    /// Nothing is decided.
    #[default]
    Unknown,
    /// The operation is not allowed.
    Denied,
    /// It is allowed under the ids of the grantor at this place.
    Granted(u8),
}

/// The rights to whatever is in a directory, by the directory alone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Below {
    /// Nobody has asked.
    #[default]
    Unknown,
    /// Somebody has asked for an object whose key has this hash. If it is the only one in its
    /// directory to be asked for, it needs no evaluation but its own.
    Asked(u64),
    /// A decision for all objects of which no credential speaks.
    Known(KeptDecision),
    /// Each object has to be looked at.
    Apart,
}

/// A number that two files seldom have in common.
pub(crate) fn hash_of(file: &FileKey) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(file)
}

impl Decisions {
    pub(crate) fn known(
        &self,
        file: &(u32, FileKey),
        version: KnownState,
        now: Moment,
        at: usize,
    ) -> Pass {
        let holds = self.version == version && now < self.until;
        let known = self.passes.get(at).filter(|_| holds && self.object.as_ref() == Some(file));
        known.copied().unwrap_or(Pass::Unknown)
    }

    /// Makes this the place of an object, for decisions that hold until then.
    pub(crate) fn claim(
        &mut self,
        file: (u32, FileKey),
        (version, now): (KnownState, Moment),
        until: Moment,
    ) -> &mut Self {
        let holds = self.version == version && now < self.until;
        if !holds || self.object != Some(file) {
            *self = Self { object: Some(file), version, until, ..Self::default() };
        }
        self.until = until.min(self.until);
        self
    }

    pub(crate) fn keep(
        &mut self,
        file: (u32, FileKey),
        (version, now): (KnownState, Moment),
        at: usize,
        kept: KeptDecision,
    ) {
        self.claim(file, (version, now), kept.until);
        for (operation, place) in Operation::ALL.iter().zip(&mut self.passes) {
            if operation.is_allowed(kept.rights) {
                *place = kept.pass;
            }
        }
        if let Some(place) = self.passes.get_mut(at) {
            *place = kept.pass;
        }
    }

    /// The state before a question about what is in a directory, which is remembered.
    pub(crate) fn asked_below(
        &mut self,
        file: (u32, FileKey),
        (version, now): (KnownState, Moment),
        asked: u64,
    ) -> Below {
        let until = now.after_milliseconds(DECISION_MILLISECONDS);
        let slot = self.claim(file, (version, now), until);
        let before = slot.below;
        if matches!(before, Below::Unknown) {
            slot.below = Below::Asked(asked);
        }
        before
    }
}
