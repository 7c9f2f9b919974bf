//! Clients that are identified by what they prove in a TLS handshake, at any address.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use comity_credential::{KeyId, PeerIdentity, PublicKey};

use crate::limits::NAME_BYTES_MAX;
use crate::wildcard::{Wildcard, is_host_letter};

/// The proof by which a client is identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// The peer has this key (`key=ed25519:...`).
    Key(PublicKey),
    /// An authority has given it a certificate (`cert=NAME`, `ca=FILE`, `cert=NAME@FILE`).
    Certificate(CertificateProof),
}

/// A certificate that an authority has signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateProof {
    /// A name in it, or a pattern of names; without it any certificate matches.
    name: Option<CertificateName>,
    /// The file of the authorities; without it, those of the server count.
    file: Option<Box<Path>>,
    /// The keys of the authorities when the plan was made.
    authorities: Box<[KeyId]>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum CertificateName {
    Exact(Box<str>),
    Pattern(Wildcard),
}

impl Proof {
    /// Parses a proof as a client of exports(5); none if the text is of another kind.
    pub(crate) fn parse(text: &str) -> Option<Result<Self, String>> {
        if let Some(key) = text.strip_prefix("key=") {
            let read = PublicKey::from_str(key).map(Self::Key);
            return Some(read.map_err(|error| format!("client {text:?}: {error}")));
        }
        let certificate = |name: Option<&str>, file: Option<&str>| {
            let file = file.map(|file| authority_file(text, file)).transpose()?;
            let name = name.map(|name| certificate_name(text, name)).transpose()?;
            let authorities = Box::default();
            Ok(Self::Certificate(CertificateProof { name, file, authorities }))
        };
        if let Some(file) = text.strip_prefix("ca=") {
            return Some(certificate(None, Some(file)));
        }
        let name = text.strip_prefix("cert=")?;
        Some(match name.split_once('@') {
            Some((name, file)) => certificate(Some(name), Some(file)),
            None => certificate(Some(name), None),
        })
    }

    /// Returns whether a peer has proved it.
    pub(crate) fn is_given_by(&self, identity: &PeerIdentity) -> bool {
        match self {
            Self::Key(key) => identity.key.principal() == Some(key),
            Self::Certificate(CertificateProof { name, authorities, .. }) => {
                let is_below = identity.authorities.iter().any(|key| authorities.contains(key));
                is_below
                    && name.as_ref().is_none_or(|name| identity.names.iter().any(|n| name.is(n)))
            }
        }
    }

    /// Returns the rank among proofs: keys, names, patterns by the number of literal characters,
    /// authorities.
    pub(crate) fn rank(&self) -> (u8, usize) {
        match self {
            Self::Key(_) => (0, 0),
            Self::Certificate(CertificateProof { name: Some(name), .. }) => match name {
                CertificateName::Exact(_) => (1, 0),
                CertificateName::Pattern(pattern) => {
                    (1, 1 + NAME_BYTES_MAX.saturating_sub(pattern.literals()))
                }
            },
            Self::Certificate(_) => (2, 0),
        }
    }
}

impl CertificateProof {
    /// Returns the file of its authorities; none if those of the server count.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the proof with the keys of its authorities.
    pub(crate) fn below(&self, authorities: Box<[KeyId]>) -> Self {
        Self { authorities, ..self.clone() }
    }
}

impl CertificateName {
    /// Returns whether this name of a certificate, which is in lower case, matches.
    fn is(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => **exact == *name,
            Self::Pattern(pattern) => pattern.matches(name),
        }
    }
}

/// Checks that the path is absolute, so that it does not depend on the server's working directory.
fn authority_file(text: &str, file: &str) -> Result<Box<Path>, String> {
    let path = PathBuf::from(file);
    let wrong = || format!("client {text:?}: expected the absolute path of a file with CAs");
    if path.is_absolute() { Ok(path.into()) } else { Err(wrong()) }
}

fn certificate_name(text: &str, name: &str) -> Result<CertificateName, String> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(format!("client {text:?}: a name has 1 to {NAME_BYTES_MAX} bytes"));
    }
    if Wildcard::is_meant_by(name) {
        let pattern = Wildcard::parse(name).map_err(|what| format!("client {text:?}: {what}"));
        return pattern.map(CertificateName::Pattern);
    }
    if !name.bytes().all(|letter| is_host_letter(letter) || letter == b':') {
        return Err(format!("client {text:?}: {name:?} is no name of a host, and no address"));
    }
    Ok(CertificateName::Exact(name.to_ascii_lowercase().into()))
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(key) => write!(f, "key={key}"),
            Self::Certificate(CertificateProof { name, file, .. }) => match (name, file) {
                (None, None) => f.write_str("ca="),
                (None, Some(file)) => write!(f, "ca={}", file.display()),
                (Some(name), None) => write!(f, "cert={name}"),
                (Some(name), Some(file)) => write!(f, "cert={name}@{}", file.display()),
            },
        }
    }
}

impl fmt::Display for CertificateName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Pattern(pattern) => pattern.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use comity_credential::PeerKey;

    use super::*;

    /// The public key of RFC 8032, 7.1, test 1.
    const KEY: &str = "ed25519:11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

    fn proof(text: &str) -> Proof {
        Proof::parse(text).unwrap().unwrap()
    }

    fn below(proof: &Proof, key: u8) -> Proof {
        let Proof::Certificate(certificate) = proof else { return proof.clone() };
        Proof::Certificate(certificate.below([KeyId([key; 32])].into()))
    }

    fn identity(names: &[&str], authorities: &[u8]) -> PeerIdentity {
        PeerIdentity {
            key: PeerKey::new(b"other", KeyId([9; 32])),
            names: names.iter().map(|name| (*name).into()).collect(),
            authorities: authorities.iter().map(|key| KeyId([*key; 32])).collect(),
            user: None,
            expires: 0,
        }
    }

    #[test]
    fn a_certificate_is_accepted_below_its_authority_only() {
        let named = below(&proof("cert=*.north.example@/ca.pem"), 1);
        assert!(named.is_given_by(&identity(&["a.north.example"], &[1])));
        assert!(named.is_given_by(&identity(&["x.example", "a.north.example"], &[2, 1])));
        assert!(!named.is_given_by(&identity(&["a.north.example"], &[2])), "another authority");
        assert!(!named.is_given_by(&identity(&["a.north.example"], &[])), "self-signed");
        assert!(!named.is_given_by(&identity(&["a.south.example"], &[1])));
        let any = below(&proof("ca=/ca.pem"), 1);
        assert!(any.is_given_by(&identity(&[], &[1])) && !any.is_given_by(&identity(&[], &[])));
        let exact = below(&proof("cert=Host.Example"), 1);
        assert!(exact.is_given_by(&identity(&["host.example"], &[1])));
    }

    #[test]
    fn a_key_is_accepted_whoever_signed_its_certificate() {
        let key = proof(&format!("key={KEY}"));
        let spki = PublicKey::from_str(KEY).unwrap().to_spki();
        let own = PeerIdentity { key: PeerKey::new(&spki, KeyId([1; 32])), ..identity(&[], &[]) };
        assert!(key.is_given_by(&own));
        assert!(!key.is_given_by(&identity(&[], &[1])));
    }

    #[test]
    fn text_that_is_no_proof_is_refused_and_display_is_the_parsed_text() {
        for text in ["key=", "key=rsa:AAAA", "ca=", "ca=ca.pem", "cert=", "cert=a b", "cert=a@ca"] {
            assert!(Proof::parse(text).unwrap().is_err(), "{text}");
        }
        assert!(Proof::parse("host.example").is_none());
        let key = format!("key={KEY}");
        for text in ["ca=/etc/ca.pem", "cert=a.example", "cert=*.example@/ca.pem", &key] {
            assert_eq!(proof(text).to_string(), text);
        }
    }
}
