//! KeyNote queries about one operation.

use std::cell::{Cell, OnceCell};
use std::sync::Arc;

use comity_keys::PublicKey;
use comity_vfs::Handle;

use crate::caller::KeyCaller;
use crate::held::Held;
use crate::memory::Memory;
use crate::root::Root;
use crate::scene::Scene;
use crate::{Moment, ObjectId, Operation, Revocations};
use comity_keynote::{
    Attributes, Exhausted, PreparedAssertion, Principal, Query, Rights, Validity,
};

/// A question: may this key do this operation on this object now? It supplies the action attributes
/// for the conditions of credentials.
pub(crate) struct Question<'a> {
    pub(crate) caller: &'a KeyCaller,
    pub(crate) operation: Operation,
    pub(crate) now: Moment,
    export: &'a str,
    /// The object, followed by the directories above it.
    objects: Vec<ObjectId>,
    object: String,
    within: String,
    /// Texts that are made only when a condition reads them.
    texts: LateTexts,
    /// True once a condition has read the operation.
    reads_operation: Cell<bool>,
}

/// Attributes that few conditions read.
#[derive(Default)]
struct LateTexts {
    now: OnceCell<String>,
    address: OnceCell<String>,
    /// The names of the caller's host.
    client_names: OnceCell<String>,
}

impl<'a> Question<'a> {
    pub(crate) fn new(
        caller: &'a KeyCaller,
        scene: &Scene<'a>,
        (object, within): (&Handle, &[ObjectId]),
        operation: Operation,
        now: Moment,
    ) -> Self {
        let object = ObjectId(*object);
        let objects: Vec<_> = std::iter::once(object).chain(within.iter().copied()).collect();
        let mut ids = String::new();
        for (place, id) in within.iter().enumerate() {
            ids.push_str(if place == 0 { "" } else { " " });
            id.append_to(&mut ids);
        }
        Self {
            caller,
            operation,
            now,
            export: scene.path,
            objects,
            object: object.to_string(),
            within: ids,
            texts: LateTexts::default(),
            reads_operation: Cell::new(false),
        }
    }

    /// The id of the object.
    pub(crate) fn object_text(&self) -> &str {
        &self.object
    }

    /// Returns whether a condition has read the operation. If none has, the rights are the same for
    /// each operation.
    pub(crate) const fn reads_operation(&self) -> bool {
        self.reads_operation.get()
    }

    /// The object, followed by the directories above it.
    pub(crate) fn objects(&self) -> &[ObjectId] {
        &self.objects
    }
}

/// The credentials that are not revoked, for rights that come from one root.
pub(crate) fn usable<'m>(
    candidates: &[&'m Arc<Held>],
    revocations: &Revocations,
    root: &Root<'_>,
) -> Vec<&'m Arc<Held>> {
    let revoked = |key: &PublicKey| revocations.has_key(key, root.key());
    let is_usable = |held: &&&Arc<Held>| {
        !revocations.has_credential(&held.digest())
            && !revoked(held.signer())
            && !held.licensees.iter().flatten().any(revoked)
    };
    candidates.iter().filter(is_usable).copied().collect()
}

/// The assertions for rights that come from one root: the root's own, and the credentials.
pub(crate) fn assertions<'m>(
    usable: &[&'m Arc<Held>],
    root: &Root<'m>,
) -> Vec<&'m PreparedAssertion> {
    let own = root.assertions().iter().map(|one| one.prepared());
    own.chain(usable.iter().map(|held| held.assertion.prepared())).collect()
}

/// The rights that a root gives, and until when they are valid.
pub(crate) fn rights(
    usable: &[&Arc<Held>],
    root: &Root<'_>,
    question: &Question<'_>,
) -> (Rights, Moment) {
    rights_from(&assertions(usable, root), &root.principal(), question)
}

/// The rights that a principal gives by these assertions, and until when they are valid.
pub(crate) fn rights_from(
    assertions: &[&PreparedAssertion],
    giver: &Principal,
    question: &Question<'_>,
) -> (Rights, Moment) {
    let requesters = [Principal::Key(question.caller.key)];
    let query = Query { requesters: &requesters, attributes: question };
    match query.rights(assertions.iter().copied()) {
        Ok(found) => (found.value(giver), moment(found.validity(), question.now)),
        // Credentials that exceed the evaluation limit give no rights.
        Err(Exhausted) => (Rights::NONE, Moment::NEVER),
    }
}

/// The moment until which a result is valid. If its text is not a moment, the result is valid only
/// now.
fn moment(validity: &Validity, now: Moment) -> Moment {
    match validity {
        Validity::Unlimited => Moment::NEVER,
        Validity::Until(text) => text.parse().unwrap_or(now),
        Validity::Now => now,
    }
}

impl Attributes for Question<'_> {
    fn get(&self, name: &str) -> Option<&str> {
        Some(match name {
            "app_domain" => "Comity",
            "export" => self.export,
            "object" => &self.object,
            "within" => &self.within,
            "operation" => {
                self.reads_operation.set(true);
                self.operation.name()
            }
            "now" => self.texts.now.get_or_init(|| self.now.to_string()),
            "requester" => &self.caller.name,
            "address" => self.texts.address.get_or_init(|| self.caller.address.to_string()),
            "client_names" => self.texts.client_names.get_or_init(|| {
                self.caller.client_names.as_ref().map(|names| names()).unwrap_or_default()
            }),
            _ => return None,
        })
    }
}

/// The credentials that may affect the answer.
pub(crate) fn candidates<'m>(memory: &'m Memory, question: &Question<'_>) -> Vec<&'m Arc<Held>> {
    let Some(set) = memory.of(&question.caller.key) else { return Vec::new() };
    let mut found: Vec<_> =
        set.about(question.objects()).filter(|held| question.now < held.until).collect();
    found.sort_by_key(|held| Arc::as_ptr(held));
    found.dedup_by_key(|held| Arc::as_ptr(held));
    found
}
