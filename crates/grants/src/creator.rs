//! Credentials for creators of objects, signed when they are fetched.

use comity_keynote::{Grant, GrantError, Rights};
use comity_keys::PublicKey;
use comity_vfs::Handle;

use crate::ObjectId;
use crate::grants::Grants;
use crate::held::Held;

/// The reason why there is no credential for an object.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The key is not known as the creator of the object.
    #[error(
        "this key did not make the object, or the server has forgotten that: it remembers the last \
         {} objects of a key",
        crate::limits::CREATIONS_PER_KEY_MAX
    )]
    NotCreator,
    /// The server has no key to sign with.
    #[error("this server signs no credentials")]
    NoKey,
    /// Signing failed.
    #[error("the credential cannot be signed: {0}")]
    Sign(#[from] GrantError),
}

impl Grants {
    /// Remembers that a key has made an object. Nothing is signed. A key with an account needs no
    /// credential, because its user owns the object.
    pub fn created(&self, object: &Handle, creator: &PublicKey) {
        if self.accounts().get(creator).is_none() {
            self.write().creations.insert(ObjectId(*object), *creator);
        }
    }

    /// Signs the credential of a creator for its object: it gives all rights to the object and to
    /// everything below it, and the creator may grant them to others. The text is the same each
    /// time. It is effective as long as the creator may create in the directory of the object.
    ///
    /// # Errors
    /// [`FetchError`].
    pub fn fetch(&self, object: &Handle, creator: &PublicKey) -> Result<String, FetchError> {
        let object = ObjectId(*object);
        if self.read().creations.creator(&object) != Some(creator) {
            return Err(FetchError::NotCreator);
        }
        let server = self.server_key.as_ref().ok_or(FetchError::NoKey)?;
        let grant = Grant {
            authorizer: *server.public(),
            licensee: *creator,
            export: None,
            object: object.to_string(),
            rights: Rights::ALL,
            expires: None,
            is_final: false,
            comment: Some("the licensee made this object".to_owned()),
        };
        Ok(grant.sign(server.private())?)
    }

    /// Returns whether this server has signed a credential.
    pub(crate) fn is_by_server(&self, held: &Held) -> bool {
        self.server_key.as_ref().is_some_and(|server| server.public() == held.signer())
    }
}
