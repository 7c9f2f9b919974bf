//! Decisions that follow from the directory of an object alone.
//!
//! Most grants speak of a directory and count for all that is below it. So the evaluation for one
//! object of a directory decides about the others, too, if no credential speaks of them, and no
//! condition can tell them apart.

use comity_vfs::{FileKey, Handle, Result};

use crate::grants::KnownState;
use crate::holder::{Decisions, Holder, KeptDecision, Pass, hash_of};
use crate::limits::DECISION_MILLISECONDS;
use crate::scene::Scene;
use crate::{Moment, Operation};

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

impl Holder {
    /// The decision that allows an operation to an object because of its directory; `None` if
    /// another evaluation has to tell.
    ///
    /// # Errors
    /// As for [`Holder::pass`].
    pub(crate) fn by_directory(
        &self,
        scene: &Scene<'_>,
        object: &Handle,
        operation: Operation,
        now: Moment,
    ) -> Result<Option<KeptDecision>> {
        let place = self.grants().ancestry().only_directory(scene.tree, object, now)?;
        let Some((dir, until)) = place else { return Ok(None) };
        if self.grants().speaks_of(self.key(), object) {
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
        let (version, file) = (self.grants().version(), (scene.number, (scene.tree.key)(dir)));
        let known =
            self.slot(&file.1).map(|mut slot| slot.asked_below(file, (version, now), asked));
        match known {
            Some(Below::Known(kept)) => return Ok(Some(kept)),
            Some(Below::Asked(other)) if other != asked => {}
            _ => return Ok(None),
        }
        let look = Operation::Look;
        let decision = self.grants().grantor_below(self.caller(), scene, dir, look, now)?;
        let kept = self.kept(&decision);
        let holds = decision.is_by_place && kept.pass != Pass::Denied;
        let below = if holds { Below::Known(kept) } else { Below::Apart };
        if let Some(mut slot) = self.slot(&file.1) {
            slot.claim(file, (version, now), kept.until).below = below;
        }
        Ok(holds.then_some(kept))
    }
}

impl Decisions {
    /// The state before a question about what is in a directory, which is remembered.
    fn asked_below(
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
