//! Creators of objects: the credential for what a key has made, signed when it is fetched.

use comity_keynote::{Grant, GrantError, Rights};
use comity_keys::PublicKey;
use comity_vfs::Handle;

use crate::ObjectId;
use crate::grants::Grants;
use crate::held::Held;

/// Why there is no credential for an object.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The key did not make it, as far as that is known.
    #[error(
        "this key did not make the object, or the server has forgotten that: it remembers the last \
         {} objects of a key",
        crate::limits::CREATIONS_PER_KEY_MAX
    )]
    NotCreator,
    /// The server has no key to sign with.
    #[error("this server signs no credentials")]
    NoKey,
    /// It cannot be signed.
    #[error("the credential cannot be signed: {0}")]
    Sign(#[from] GrantError),
}

impl Grants {
    /// Remembers that a key has made an object. Nothing is signed. A key with an account needs no
    /// credential for what it makes: its user owns that.
    pub fn created(&self, object: &Handle, creator: &PublicKey) {
        if self.accounts().get(creator).is_none() {
            self.write().creations.insert(ObjectId(*object), *creator);
        }
    }

    /// The credential of a creator for an object that it has made, signed now: all rights to it,
    /// and to what lies below it, which the creator may hand on. It is the same text each time. It
    /// gives something as long as the creator may create in the directory of the object.
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
