//! Rights to an object that follow from its creation.
//!
//! The creator of an object has rights to it as long as the creator may create in the directory
//! that contains it, and may grant these rights to others. They are used under the ids of the root
//! that allows the creator to create there.

use std::sync::Arc;

use comity_keynote::{Principal, Rights};
use comity_keys::PublicKey;

use crate::accounts::Accounts;
use crate::evaluate::{self, Question, candidates};
use crate::held::Held;
use crate::memory::Memory;
use crate::root::Root;
use crate::scene::Scene;
use crate::{Moment, Operation};

/// The inputs of a decision by creation.
pub(crate) struct ByCreation<'m> {
    pub(crate) memory: &'m Memory,
    pub(crate) accounts: &'m Accounts,
    /// The key by which the server signs credentials for creators.
    pub(crate) server: Option<&'m PublicKey>,
}

/// The object of a question, or a directory above it, and the key that made it.
#[derive(Clone, Copy, PartialEq)]
struct MadeObject {
    /// Its index among the objects of the question.
    place: usize,
    creator: PublicKey,
}

/// A root that allows an operation because of the object's creator.
pub(crate) struct CreatorGrant<'m> {
    pub(crate) root: Root<'m>,
    pub(crate) creator: PublicKey,
    pub(crate) until: Moment,
}

impl<'m> ByCreation<'m> {
    /// Returns the first root that allows the operation because of the creator of the object or of
    /// a directory above it.
    pub(crate) fn first(
        &self,
        scene: &Scene<'m>,
        question: &'m Question<'_>,
    ) -> Option<CreatorGrant<'m>> {
        let held = candidates(self.memory, question);
        let mut works = self.own(question);
        works.extend(self.signed(&held, question).into_iter().map(|(work, _)| work));
        works.dedup();
        works.iter().find_map(|work| {
            self.roots_of(*work, scene, question).into_iter().find_map(|(root, until)| {
                let (rights, holds) = self.rights((*work, &root), &held, question);
                let creator = work.creator;
                let found = CreatorGrant { root, creator, until: until.min(holds) };
                question.operation.is_allowed(rights).then_some(found)
            })
        })
    }

    /// The objects that the caller has made.
    fn own(&self, question: &Question<'_>) -> Vec<MadeObject> {
        let creator = question.caller.key;
        let objects = question.objects().iter().enumerate();
        let is_own = |object| self.memory.creations.creator(object) == Some(&creator);
        objects
            .filter(|(_, it)| is_own(it))
            .map(|(place, _)| MadeObject { place, creator })
            .collect()
    }

    /// The objects whose creator the server has named in a credential, with these credentials.
    fn signed(
        &self,
        held: &[&'m Arc<Held>],
        question: &Question<'_>,
    ) -> Vec<(MadeObject, &'m Arc<Held>)> {
        let Some(server) = self.server else { return Vec::new() };
        let work = |held: &&'m Arc<Held>| {
            let [creator] = held.licensees.as_deref()? else { return None };
            let (object, others) = held.objects.as_deref()?.split_first()?;
            if others.iter().any(|other| other != object) {
                return None;
            }
            let place = question.objects().iter().position(|other| other == object)?;
            Some((MadeObject { place, creator: *creator }, *held))
        };
        held.iter().filter(|held| held.signer() == server).filter_map(work).collect()
    }

    /// The roots by which a creator may still create in the directory that now contains its object.
    fn roots_of(
        &self,
        work: MadeObject,
        scene: &Scene<'m>,
        question: &'m Question<'_>,
    ) -> Vec<(Root<'m>, Moment)> {
        let above = question.objects().get(work.place + 1..).unwrap_or_default();
        let Some((dir, within)) = above.split_first() else { return Vec::new() };
        if self.accounts.get(&work.creator).is_some() {
            return Vec::new();
        }
        let creator = question.caller.through(work.creator);
        let asked =
            Question::new(&creator, scene, (&dir.0, within), Operation::Create, question.now);
        let held = candidates(self.memory, &asked);
        let allows = |root: Root<'m>| {
            let usable = evaluate::usable(&held, &self.memory.revocations, &root);
            let (rights, until) = evaluate::rights(&usable, &root, &asked);
            Operation::Create.is_allowed(rights).then_some((root, until))
        };
        Root::all(&held, self.accounts, (scene, question.caller))
            .into_iter()
            .filter_map(allows)
            .collect()
    }

    /// The rights of the caller to an object that another key made.
    fn rights(
        &self,
        (work, root): (MadeObject, &Root<'_>),
        held: &[&'m Arc<Held>],
        question: &Question<'_>,
    ) -> (Rights, Moment) {
        let revocations = &self.memory.revocations;
        if work.creator == question.caller.key && self.own(question).contains(&work) {
            let is_revoked = revocations.has_key(&work.creator, root.key());
            return (if is_revoked { Rights::NONE } else { Rights::ALL }, Moment::NEVER);
        }
        let Some(server) = self.server else { return (Rights::NONE, Moment::NEVER) };
        let about = self.signed(held, question);
        let counts = |one: &&'m Arc<Held>| {
            let is_about =
                |(other, held): &(MadeObject, &Arc<Held>)| *other == work && Arc::ptr_eq(held, one);
            one.signer() != server || about.iter().any(is_about)
        };
        let held: Vec<_> = held.iter().copied().filter(counts).collect();
        let usable = evaluate::usable(&held, revocations, root);
        let assertions: Vec<_> = usable.iter().map(|held| held.assertion.prepared()).collect();
        evaluate::rights_from(&assertions, &Principal::Key(*server), question)
    }
}
