//! The certificate authorities of a configuration.

use std::io::Read;
use std::path::{Path, PathBuf};

use comity_credential::KeyId;
use rustls::crypto::WebPkiSupportedAlgorithms;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, TrustAnchor, UnixTime};
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::Certificate;
use crate::limits::{AUTHORITIES_MAX, FILE_BYTES_MAX};

/// Certificate authorities that a configuration trusts.
#[derive(Debug, Clone, Default)]
pub struct Authorities {
    anchors: Vec<(KeyId, TrustAnchor<'static>)>,
}

/// The reason why certificates of authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The file cannot be read.
    #[error("{} cannot be read: {}", .0.display(), .1)]
    Unreadable(PathBuf, String),
    /// The file has no certificate.
    #[error("{} holds no certificate in PEM (-----BEGIN CERTIFICATE-----)", .0.display())]
    Empty(PathBuf),
    /// A certificate in the file is malformed.
    #[error("{}: its certificate number {} is malformed or not of version 3", .0.display(), .1)]
    Malformed(PathBuf, usize),
    /// The file has too many certificates.
    #[error("more than {AUTHORITIES_MAX} certificate authorities")]
    Many,
}

impl Authorities {
    /// Adds the authorities in a PEM file; returns the ids of their keys.
    ///
    /// # Errors
    /// [`AuthorityError`]; nothing is then added.
    pub fn add(&mut self, path: &Path) -> Result<Vec<KeyId>, AuthorityError> {
        let certificates = certificates(path)?;
        let mut added = Vec::new();
        for (at, certificate) in certificates.iter().enumerate() {
            let malformed = || AuthorityError::Malformed(path.to_owned(), at + 1);
            let key = Certificate::read(certificate).map_err(|_| malformed())?.key().id();
            let anchor = anchor_from_trusted_cert(certificate).map_err(|_| malformed())?;
            added.push((key, anchor.to_owned()));
        }
        let keys = added.iter().map(|(key, _)| *key).collect();
        added.retain(|(key, _)| self.anchors.iter().all(|(known, _)| known != key));
        if self.anchors.len() + added.len() > AUTHORITIES_MAX {
            return Err(AuthorityError::Many);
        }
        self.anchors.append(&mut added);
        Ok(keys)
    }

    /// Returns the whole days until the first of the authorities in a file expires.
    ///
    /// # Errors
    /// [`AuthorityError`].
    pub fn days_left(path: &Path) -> Result<i64, AuthorityError> {
        let certificates = certificates(path)?;
        let days = certificates.iter().enumerate().map(|(at, certificate)| {
            let malformed = |_| AuthorityError::Malformed(path.to_owned(), at + 1);
            Certificate::read(certificate).map(|read| read.days_left()).map_err(malformed)
        });
        days.collect::<Result<Vec<_>, _>>().map(|days| days.into_iter().min().unwrap_or(0))
    }

    /// Returns whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.anchors.is_empty()
    }

    /// Returns the authorities above a peer's certificate at the time `now`. The first certificate
    /// is the peer's; the others may link it to an authority.
    pub(crate) fn above(
        &self,
        chain: &[CertificateDer<'_>],
        algorithms: &WebPkiSupportedAlgorithms,
        now: UnixTime,
    ) -> Box<[KeyId]> {
        let Some((peer, between)) = chain.split_first() else { return Box::default() };
        let Ok(peer) = EndEntityCert::try_from(peer) else { return Box::default() };
        let is_below = |anchor: &TrustAnchor<'static>| {
            let (anchors, usage) = (std::slice::from_ref(anchor), KeyUsage::client_auth());
            peer.verify_for_usage(algorithms.all, anchors, between, now, usage, None, None).is_ok()
        };
        self.anchors.iter().filter(|(_, anchor)| is_below(anchor)).map(|(key, _)| *key).collect()
    }
}

/// The certificates in a PEM file, at least one.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, AuthorityError> {
    let unreadable = |why: String| AuthorityError::Unreadable(path.to_owned(), why);
    let text = text_of(path).map_err(|error| unreadable(error.to_string()))?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let certificates = certificates.map_err(|error| unreadable(error.to_string()))?;
    if certificates.is_empty() {
        return Err(AuthorityError::Empty(path.to_owned()));
    }
    Ok(certificates)
}

/// The content of a file, up to a limit.
pub(crate) fn text_of(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut text)?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(std::io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(text)
}
