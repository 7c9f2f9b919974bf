//! The identity of a peer from its certificate.

use std::time::Duration;

use comity_credential::PeerIdentity;
use comity_vfs::{Cred, Wire};
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::{CertificateDer, UnixTime};

use crate::Trust;
use crate::certificate::{Certificate, MalformedCertificate, UserName};

/// The reason why a peer's certificate is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The certificate is malformed.
    #[error("the peer's certificate is malformed: make it anew, as X.509 version 3")]
    Malformed,
    /// The certificate has expired.
    #[error("the peer's certificate has expired: renew it on the client")]
    Expired,
    /// The certificate is not valid yet.
    #[error(
        "the peer's certificate is not valid yet: compare the clocks of the client and the server"
    )]
    Early,
    /// The certificate names several users.
    #[error("the peer's certificate names several users (otherName): issue one with a single user")]
    SeveralUsers,
    /// The user in the certificate is malformed.
    #[error(
        "the user in the peer's certificate (otherName) is malformed: issue one with a uid and a \
         gid at least"
    )]
    BadUser,
}

impl From<MalformedCertificate> for IdentityError {
    fn from(MalformedCertificate: MalformedCertificate) -> Self {
        Self::Malformed
    }
}

/// The identity of a peer that has proved the key of the first certificate in `chain`.
///
/// # Errors
/// [`IdentityError`].
pub(crate) fn identity(
    chain: &[CertificateDer<'_>],
    trust: &Trust,
    algorithms: &WebPkiSupportedAlgorithms,
    now: u64,
) -> Result<PeerIdentity, IdentityError> {
    let first = chain.first().ok_or(IdentityError::Malformed)?;
    let certificate = Certificate::read(first)?;
    if now > certificate.expires() {
        return Err(IdentityError::Expired);
    }
    if now < certificate.begins() {
        return Err(IdentityError::Early);
    }
    let moment = UnixTime::since_unix_epoch(Duration::from_secs(now));
    let authorities = trust.authorities.above(chain, algorithms, moment);
    let user = if authorities.is_empty() { None } else { user(&certificate, trust)? };
    let (key, expires) = (certificate.key(), certificate.expires());
    Ok(PeerIdentity { key, names: certificate.names(), authorities, user, expires })
}

/// The user that a certificate below an authority names.
fn user(certificate: &Certificate<'_>, trust: &Trust) -> Result<Option<Cred<Wire>>, IdentityError> {
    let Some(kind) = &trust.user_names else { return Ok(None) };
    let mut users = certificate.users(kind).into_iter();
    match (users.next(), users.next()) {
        (None, _) => Ok(None),
        (Some(UserName::User(user)), None) => Ok(Some(user)),
        (Some(UserName::Malformed), None) => Err(IdentityError::BadUser),
        (Some(_), Some(_)) => Err(IdentityError::SeveralUsers),
    }
}
