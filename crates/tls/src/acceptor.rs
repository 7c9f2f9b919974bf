use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwap;
use comity_credential::PeerIdentity;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{Error, ServerConfig};

use crate::client_verifier::ClientVerifier;
use crate::peer_certificate::identity;
use crate::{Authorities, Handshake, IdentityError, ObjectId, ServerKey, moment};

/// The name of RPC-with-TLS in a handshake (RFC 9289, 8.2).
const ALPN: &[u8] = b"sunrpc";

/// The parts of a configuration that say what a peer's certificate proves beside its key.
#[derive(Debug, Default)]
pub struct Trust {
    /// The authorities whose certificates say names and users.
    pub authorities: Authorities,
    /// The object identifier of otherName entries that say a user
    /// (draft-cel-nfsv4-rpc-tls-othername, `id-on-rpcAuthSys`). IANA has assigned none yet.
    pub user_names: Option<ObjectId>,
}

/// Begins TLS on the server's side, with the key and the trust of the moment.
pub struct Acceptor(ArcSwap<Accepting>);

/// A key and a trust that are in force together.
pub(crate) struct Accepting {
    pub(crate) config: Arc<ServerConfig>,
    trust: Arc<Trust>,
}

impl Acceptor {
    /// Accepts with this key and this trust.
    ///
    /// # Errors
    /// The key cannot be used with TLS 1.3.
    pub fn new(key: &ServerKey, trust: Trust) -> Result<Self, Error> {
        Ok(Self(ArcSwap::from_pointee(accepting(key, trust)?)))
    }

    /// Uses another key and another trust from the next handshake on. Connections that are open
    /// keep theirs.
    ///
    /// # Errors
    /// The key cannot be used with TLS 1.3; everything stays as it was then.
    pub fn renew(&self, key: &ServerKey, trust: Trust) -> Result<(), Error> {
        self.0.store(Arc::new(accepting(key, trust)?));
        Ok(())
    }

    /// The server's end of a new handshake.
    ///
    /// # Errors
    /// There are no random bytes.
    pub fn begin(&self) -> Result<Box<Handshake>, Error> {
        Handshake::new(Arc::clone(&self.0.load())).map(Box::new)
    }
}

impl Accepting {
    /// The identity of a peer that has proved the key of the first of these certificates.
    pub(crate) fn identity(
        &self,
        chain: &[CertificateDer<'_>],
    ) -> Result<PeerIdentity, IdentityError> {
        let algorithms = provider().signature_verification_algorithms;
        identity(chain, &self.trust, &algorithms, moment::now())
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}

/// The cryptography of this process.
pub(crate) fn provider() -> CryptoProvider {
    aws_lc_rs::default_provider()
}

fn accepting(key: &ServerKey, trust: Trust) -> Result<Accepting, Error> {
    let (provider, trust) = (provider(), Arc::new(trust));
    let algorithms = provider.signature_verification_algorithms;
    let verifier = ClientVerifier { trust: Arc::clone(&trust), algorithms };
    let key = SingleCertAndKey::from(Arc::clone(key.certified()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS13])?
        .with_client_cert_verifier(Arc::new(verifier))
        .with_cert_resolver(Arc::new(key));
    config.alpn_protocols = vec![ALPN.to_vec()];
    // No session is resumed: a resumed one shows no certificate, so it would have to be bound to
    // the key of the first one, and mounts that last for days would gain nothing.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    // [`crate::Session`] seals and opens records itself, so that data are copied once.
    config.enable_secret_extraction = true;
    Ok(Accepting { config: Arc::new(config), trust })
}
