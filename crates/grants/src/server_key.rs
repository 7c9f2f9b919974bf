use comity_keys::{PrivateKey, PublicKey, Signer};

/// The key by which a server signs credentials for creators.
pub struct ServerKey(PrivateKey);

impl ServerKey {
    /// Takes a key, which should be used for nothing else.
    #[must_use]
    pub const fn new(key: PrivateKey) -> Self {
        Self(key)
    }

    /// Its public part.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        self.0.public_key()
    }

    /// Its private part.
    pub(crate) const fn private(&self) -> &PrivateKey {
        &self.0
    }
}
