//! Extended attributes that belong to no file: with them a host without Comity's programs submits
//! credentials and asks for decisions (`setfattr -n user.comity.grant`).

use comity_grants::{Grants, ObjectId, Operation, SubmitError};
use comity_keys::PublicKey;
use comity_vfs::{Access, Change, Result, Status, Wire};

use super::{Node, View};
use crate::key_identity::key_caller;
use crate::reasons::reasons;

/// Submits credentials, at the root of an export.
const GRANT: &[u8] = b"comity.grant";
/// The id of an object, by which credentials name it.
const ID: &[u8] = b"comity.id";
/// The caller as the server knows it.
const WHOAMI: &[u8] = b"comity.whoami";
/// The rights of the caller to an object and their reasons; at the root also why the last
/// submission was refused.
const WHY: &[u8] = b"comity.why";

/// The credential of the caller for an object that it has made.
const CREDENTIAL: &[u8] = b"comity.credential";

/// The prefix of these names. A server that does not support keys passes them to the file system.
const PREFIX: &[u8] = b"comity.";

impl View<'_> {
    /// Returns whether setting an extended attribute of this name submits credentials.
    #[must_use]
    pub fn takes_grants(&self, node: &Node, name: &[u8]) -> bool {
        name == GRANT && self.plan.grants().is_some() && *node == self.root()
    }

    /// Returns whether the caller may ask for its rights by extended attributes of an object,
    /// whatever the rights are.
    #[must_use]
    pub fn answers_keys(&self) -> bool {
        self.resolved.key().is_some()
    }

    /// Returns whether a caller who acts by grants may set extended attributes of an object. They
    /// need another right than data do. `None` for any other caller, for whom the right to write
    /// data decides.
    ///
    /// # Errors
    /// [`Status`] if it cannot be found out what the object lies below.
    pub fn may_tag(&self, node: &Node) -> Result<Option<bool>> {
        let Some(holder) = self.resolved.holder() else { return Ok(None) };
        let granted = self.pass(holder, node.handle(), Operation::SetAttributes)?;
        let Some(cred) = granted.filter(|_| !self.rules().read_only) else {
            return Ok(Some(false));
        };
        let (access, _) = self.fs().access(cred, node.handle(), Access::MODIFY)?;
        Ok(Some(access.contains(Access::MODIFY)))
    }

    /// Submits credentials for the caller's key. They are on stable storage when this returns.
    ///
    /// # Errors
    /// [`Status::Perm`] if the caller proved no key; [`Status::Inval`] if the credentials cannot be
    /// used, [`Status::NoSpc`] if there is no room for them, [`Status::Io`] if they cannot be
    /// stored. The attribute `comity.why` of the root contains the reason.
    pub fn submit_grants(&self, root: &Node, text: &[u8]) -> Result<Change<Wire>> {
        let grants = self.plan.grants().ok_or(Status::NotSupp)?;
        let key = *self.resolved.key().ok_or(Status::Perm)?;
        let attr = self.getattr(root)?;
        let text = std::str::from_utf8(text).map_err(|_| Status::Inval)?;
        let submitted = grants.submit(key, text);
        grants.tell(key, &submitted);
        let unchanged = Change { before: Some(attr), after: Some(attr) };
        match submitted {
            Ok(credentials) if credentials.iter().any(|one| one.outcome.is_held()) => Ok(unchanged),
            Ok(_) | Err(SubmitError::Credential { .. } | SubmitError::Number(_)) => {
                Err(Status::Inval)
            }
            Err(SubmitError::Full(_)) => Err(Status::NoSpc),
            Err(SubmitError::Store(_)) => Err(Status::Io),
        }
    }

    /// Returns the value of an extended attribute of the server; `None` if the name is that of a
    /// file's attribute.
    ///
    /// # Errors
    /// [`Status::NoXattr`] for an attribute that can only be set, and for the credential of an
    /// object that the caller has not made; [`Status`].
    pub(super) fn grant_xattr(&self, node: &Node, name: &[u8]) -> Result<Option<Vec<u8>>> {
        // The metadata server keeps attributes with this prefix in the files of its data servers.
        if !name.starts_with(PREFIX) || self.plan.layouts().is_some() {
            return Ok(None);
        }
        let Some(grants) = self.plan.grants() else { return Ok(None) };
        self.getattr(node)?;
        let text = match name {
            ID => self.object_id(node),
            WHOAMI => self.whoami(),
            CREDENTIAL => self.fetch(node).map_err(|_| Status::NoXattr)?,
            WHY => self.last_submission(grants, node) + &self.why(node, None)?,
            _ => return Err(Status::NoXattr),
        };
        Ok(Some(text.into_bytes()))
    }

    /// The id by which credentials name an object.
    #[must_use]
    pub fn object_id(&self, node: &Node) -> String {
        ObjectId(*node.handle()).to_string()
    }

    /// Explains which rights the caller has to an object for an operation, or for all operations,
    /// and why.
    ///
    /// # Errors
    /// [`Status`] if the directories above the object cannot be found.
    pub fn why(&self, node: &Node, operation: Option<Operation>) -> Result<String> {
        let Some(holder) = self.resolved.holder() else { return Ok(self.whoami()) };
        let grants = holder.grants();
        self.at_scene(|scene| reasons(grants, holder.caller(), (scene, node.handle()), operation))
    }

    /// Explains the rights of another key, as if it called from the caller's address.
    ///
    /// # Errors
    /// [`Status::Perm`] unless the caller's credentials lead to that key; [`Status`] if the
    /// directories above the object cannot be found.
    pub fn why_of(
        &self,
        key: &PublicKey,
        node: &Node,
        operation: Option<Operation>,
    ) -> Result<String> {
        let grants = self.plan.grants().ok_or(Status::NotSupp)?;
        let asker = self.resolved.key().ok_or(Status::Perm)?;
        if !grants.may_ask_about(asker, key) {
            return Err(Status::Perm);
        }
        let from = self.resolved.client();
        let caller = key_caller(self.resolved.export(), (*key, from), self.rules());
        self.at_scene(|scene| reasons(grants, &caller, (scene, node.handle()), operation))
    }

    /// Returns the outcome of the caller's last submission, at the root.
    fn last_submission(&self, grants: &Grants, node: &Node) -> String {
        let key = self.resolved.key().filter(|_| *node == self.root());
        let told = key.and_then(|key| grants.last_submission(key));
        told.map(|text| format!("last submission: {text}")).unwrap_or_default()
    }

    /// Describes the caller as the server knows it: its key, its account, the ids under which it
    /// acts.
    #[must_use]
    pub fn whoami(&self) -> String {
        let key = match self.resolved.key() {
            Some(key) => format!("key {key} ({})\n", key.fingerprint()),
            None => "no key\n".to_owned(),
        };
        let acts = match (self.resolved.holder(), self.resolved.account()) {
            (Some(_), _) => "acts by what was granted to the key\n".to_owned(),
            (None, Some(account)) => format!("acts as user {}\n", account.user),
            (None, None) => format!("acts as uid {}, gid {}\n", self.cred().uid, self.cred().gid),
        };
        key + &acts
    }
}
