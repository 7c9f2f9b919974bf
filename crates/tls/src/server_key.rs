use std::path::{Path, PathBuf};
use std::sync::Arc;

use comity_credential::PeerKey;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::Certificate;
use crate::authorities::{AuthorityError, certificates, text_of};
use crate::provider::provider;

/// The server's certificates and the private key that they belong to.
#[derive(Debug)]
pub struct ServerKey {
    certified: Arc<CertifiedKey>,
    public: PeerKey,
    names: Box<[Box<str>]>,
    days_left: i64,
}

/// Why a certificate and its private key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerKeyError {
    /// The file of the certificates.
    #[error(transparent)]
    Certificate(#[from] AuthorityError),
    /// The file of the private key cannot be read.
    #[error("{} cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, String),
    /// It holds no private key.
    #[error(
        "{} holds no private key in PEM (-----BEGIN PRIVATE KEY-----) that has no passphrase: {}",
        .0.display(), .1
    )]
    NoKey(PathBuf, String),
    /// The certificate makes no sense.
    #[error("the first certificate in {} is malformed", .0.display())]
    Malformed(PathBuf),
    /// The certificate and the private key do not belong together.
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
    /// Reads the certificates (the server's first) and the private key from files in PEM.
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

    /// Returns the names and addresses by which clients may mount: they compare the name that they
    /// were given.
    #[must_use]
    pub const fn names(&self) -> &[Box<str>] {
        &self.names
    }

    /// Returns the whole days that the certificate had left when it was read; negative ones after
    /// its end.
    #[must_use]
    pub const fn days_left(&self) -> i64 {
        self.days_left
    }
}
