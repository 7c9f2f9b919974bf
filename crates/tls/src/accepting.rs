use std::sync::Arc;

use comity_credential::PeerIdentity;
use rustls::pki_types::CertificateDer;
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::version::TLS13;
use rustls::{Error, ServerConfig};

use crate::client_verifier::ClientVerifier;
use crate::peer_certificate::identity;
use crate::provider::provider;
use crate::{IdentityError, ServerKey, Trust, moment};

/// The ALPN name of RPC-with-TLS (RFC 9289, 8.2).
const ALPN: &[u8] = b"sunrpc";

/// A server key with the trust configured for it.
pub(crate) struct Accepting {
    pub(crate) config: Arc<ServerConfig>,
    trust: Arc<Trust>,
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

    /// Combines a key with a trust.
    ///
    /// # Errors
    /// The key cannot be used with TLS 1.3.
    pub(crate) fn new(key: &ServerKey, trust: Trust) -> Result<Self, Error> {
        let (provider, trust) = (provider(), Arc::new(trust));
        let algorithms = provider.signature_verification_algorithms;
        let verifier = ClientVerifier { trust: Arc::clone(&trust), algorithms };
        let key = SingleCertAndKey::from(Arc::clone(key.certified()));
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(Arc::new(verifier))
            .with_cert_resolver(Arc::new(key));
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Sessions are not resumed: a resumed session shows no certificate, so it would have to be
        // bound to the key of the first one, and mounts that last for days would gain nothing.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        // [`crate::RecordLayer`] seals and opens records itself, so that data is copied only once.
        config.enable_secret_extraction = true;
        Ok(Self { config: Arc::new(config), trust })
    }
}
