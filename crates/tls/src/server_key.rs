use std::path::{Path, PathBuf};
use std::sync::Arc;

use comity_credential::PeerKey;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::Certificate;
use crate::authorities::{AuthorityError, certificates, text_of};
use crate::provider::provider;

/// The server's certificates with the matching private key.
#[derive(Debug)]
pub struct ServerKey {
    certified: Arc<CertifiedKey>,
    public: PeerKey,
    names: Box<[Box<str>]>,
    days_left: i64,
}

/// The reason why a certificate and its private key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerKeyError {
    /// The file of the certificates cannot be used.
    #[error(transparent)]
    Certificate(#[from] AuthorityError),
    /// The file of the private key cannot be read.
    #[error("{} cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, String),
    /// The file contains no private key.
    #[error(
        "{} holds no private key in PEM (-----BEGIN PRIVATE KEY-----) that has no passphrase: {}",
        .0.display(), .1
    )]
    NoKey(PathBuf, String),
    /// The certificate is malformed.
    #[error("the first certificate in {} is malformed", .0.display())]
    Malformed(PathBuf),
    /// The certificate and the private key do not match.
    #[error(
        "the private key in {} is not that of the first certificate in {}: name the two files of \
         one pair",
        key.display(), certificate.display()
    )]
    Mismatch {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the private key.
        key: PathBuf,
    },
}

impl ServerKey {
    /// Reads the certificates (the server's first) and the private key from PEM files.
    ///
    /// # Errors
    /// [`ServerKeyError`].
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, ServerKeyError> {
        let chain = certificates(certificate)?;
        let (path, unreadable) = (key.to_owned(), ServerKeyError::Unreadable);
        let text = text_of(key).map_err(|error| unreadable(key.to_owned(), error.to_string()))?;
        let private = PrivateKeyDer::from_pem_slice(&text)
            .map_err(|error| ServerKeyError::NoKey(path, error.to_string()))?;
        Self::new(chain, private, (certificate, key))
    }

    fn new(
        chain: Vec<CertificateDer<'static>>,
        private: PrivateKeyDer<'static>,
        (certificate, key): (&Path, &Path),
    ) -> Result<Self, ServerKeyError> {
        let malformed = || ServerKeyError::Malformed(certificate.to_owned());
        let first = chain.first().ok_or_else(malformed)?;
        let read = Certificate::read(first).map_err(|_| malformed())?;
        let (public, names, days_left) = (read.key(), read.names(), read.days_left());
        let signing = provider().key_provider.load_private_key(private);
        let signing =
            signing.map_err(|error| ServerKeyError::NoKey(key.to_owned(), error.to_string()))?;
        let certified = Arc::new(CertifiedKey::new(chain, signing));
        if certified.keys_match().is_err() {
            let (certificate, key) = (certificate.to_owned(), key.to_owned());
            return Err(ServerKeyError::Mismatch { certificate, key });
        }
        Ok(Self { certified, public, names, days_left })
    }

    pub(crate) const fn certified(&self) -> &Arc<CertifiedKey> {
        &self.certified
    }

    /// Returns its public key.
    #[must_use]
    pub const fn public(&self) -> &PeerKey {
        &self.public
    }

    /// Returns the names and addresses by which clients may mount: clients compare them with the
    /// name that they use.
    #[must_use]
    pub const fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Returns the whole days until the certificate expired when it was read; negative ones after
    /// its expiry.
    #[must_use]
    pub const fn days_left(&self) -> i64 {
        self.days_left
    }
}
