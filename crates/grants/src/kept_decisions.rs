//! The cached decisions of a key, by object.

use comity_keynote::Rights;
use comity_vfs::FileKey;

use crate::grants::KnownState;
use crate::limits::DECISION_MILLISECONDS;
use crate::{Moment, Operation};

/// The index of the decision about the objects in a directory, after those about operations.
pub(crate) const KNOWS_BELOW: usize = Operation::ALL.len();
/// The index of the decision that each object in a directory is visible, whichever it is.
pub(crate) const SEES_ALL_BELOW: usize = KNOWS_BELOW + 1;

/// The cached decisions about one object.
#[derive(Debug, Default)]
pub(crate) struct Decisions {
    object: Option<(u32, FileKey)>,
    version: KnownState,
    until: Moment,
    passes: [Pass; SEES_ALL_BELOW + 1],
    /// A hash of the name by which the object was looked up last; 0 if none was since the slot was
    /// assigned.
    place: u64,
    pub(crate) below: Below,
}

/// A cached decision about an operation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct KeptDecision {
    pub(crate) pass: Pass,
    /// The rights by which it is valid for other operations, too.
    pub(crate) rights: Rights,
    pub(crate) until: Moment,
}

/// A decision about one operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Pass {
    /// There is no decision yet.
    #[default]
    Unknown,
    /// The operation is not allowed.
    Denied,
    /// It is allowed under the ids of the grantor at this index.
    Granted(u8),
}

/// The decision about all objects in a directory, from the directory alone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Below {
    /// No question was asked yet.
    #[default]
    Unknown,
    /// A question about an object whose key has this hash was asked. As long as no other object in
    /// the directory is asked about, evaluating the object alone is enough.
    Asked(u64),
    /// A decision for all objects that no credential names.
    Known(KeptDecision),
    /// Each object must be evaluated separately.
    Apart,
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

    /// Assigns the slot to an object. Its decisions are valid until the moment `until`.
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

    /// Notes the hash of the name by which the object was looked up. Returns false if it was looked
    /// up by this name before, so that its place is remembered already.
    pub(crate) fn found_by(
        &mut self,
        file: (u32, FileKey),
        (version, now): (KnownState, Moment),
        place: u64,
    ) -> bool {
        let until = now.after_milliseconds(DECISION_MILLISECONDS);
        let before = std::mem::replace(&mut self.claim(file, (version, now), until).place, place);
        before != place
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

    /// Notes a question about an object in a directory; returns the state before it.
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
