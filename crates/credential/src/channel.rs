//! The channel of a call, and what it proves about the peer.

use std::fmt;
use std::sync::Arc;

use comity_keys::PublicKey;
use comity_vfs::{Cred, Wire};

/// The channel by which a call arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Channel {
    /// Plain TCP: everybody on the network path can read and change the bytes.
    #[default]
    Plain,
    /// RPC-with-TLS (RFC 9289), with the identity that the peer has proved, if any.
    Tls(Option<Arc<PeerIdentity>>),
}

/// The identity that a peer has proved in a TLS handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The key of its certificate, by whomever it was signed: this key is the principal.
    pub key: PeerKey,
    /// The names in the certificate (dNSName and iPAddress), in lower case. They are trusted only
    /// if an authority signed the certificate.
    pub names: Box<[Box<str>]>,
    /// The configured certificate authorities above the certificate; none for one that the peer has
    /// signed itself.
    pub authorities: Box<[KeyId]>,
    /// The user in the certificate, as confirmed by an authority
    /// (draft-cel-nfsv4-rpc-tls-othername, `id-on-rpcAuthSys`).
    pub user: Option<Cred<Wire>>,
    /// The time at which the certificate expires, in seconds since 1970.
    pub expires: u64,
}

/// A public key that a peer has proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerKey {
    id: KeyId,
    principal: Option<PublicKey>,
}

/// The id of a key: the SHA-256 of its SubjectPublicKeyInfo.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KeyId(pub [u8; 32]);

/// The kind of a channel, which an export may require.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChannelKind {
    /// A channel without TLS.
    Plain,
    /// TLS without a certificate of the peer.
    Tls,
    /// TLS with a key that the peer has proved.
    MutualTls,
}

impl Channel {
    /// The identity that the peer has proved.
    #[must_use]
    #[inline]
    pub fn identity(&self) -> Option<&Arc<PeerIdentity>> {
        match self {
            Self::Plain | Self::Tls(None) => None,
            Self::Tls(Some(identity)) => Some(identity),
        }
    }

    /// A number that distinguishes channels of one address: 0 without TLS, 1 for TLS without a key,
    /// otherwise the first bytes of the key's id.
    #[must_use]
    #[inline]
    pub fn number(&self) -> u64 {
        match self {
            Self::Plain => 0,
            Self::Tls(None) => 1,
            Self::Tls(Some(identity)) => {
                let [a, b, c, d, e, f, g, h, ..] = identity.key.id().0;
                u64::from_be_bytes([a, b, c, d, e, f, g, h])
            }
        }
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ChannelKind {
        match self {
            Self::Plain => ChannelKind::Plain,
            Self::Tls(None) => ChannelKind::Tls,
            Self::Tls(Some(_)) => ChannelKind::MutualTls,
        }
    }

    /// Returns whether it is encrypted.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        matches!(self, Self::Tls(_))
    }
}

impl ChannelKind {
    /// All kinds of channels, in the order of exports(5) and metrics.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Tls, Self::MutualTls];

    /// Its name in `xprtsec=` of exports(5).
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "none",
            Self::Tls => "tls",
            Self::MutualTls => "mtls",
        }
    }
}

impl fmt::Display for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("plain"),
            Self::Tls(None) => f.write_str("TLS"),
            Self::Tls(Some(identity)) => write!(f, "TLS, key {}", identity.key),
        }
    }
}

impl PeerKey {
    /// Makes a key from its SubjectPublicKeyInfo (DER), whose SHA-256 is `id`.
    #[must_use]
    pub fn new(spki: &[u8], id: KeyId) -> Self {
        Self { id, principal: PublicKey::from_spki(spki).ok() }
    }

    /// Its name.
    #[must_use]
    pub const fn id(&self) -> KeyId {
        self.id
    }

    /// The principal of the key; `None` if its algorithm is not supported for assertions.
    #[must_use]
    pub const fn principal(&self) -> Option<&PublicKey> {
        self.principal.as_ref()
    }
}

/// Formats the key as a principal, or else by its id.
impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.principal {
            Some(principal) => principal.fmt(f),
            None => self.id.fmt(f),
        }
    }
}

/// `sha256:` and 64 hexadecimal digits.
impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_a_channel_follows_from_what_the_peer_has_proved() {
        let key = PeerKey::new(b"spki", KeyId([0xab; 32]));
        let identity = PeerIdentity {
            key,
            names: Box::default(),
            authorities: Box::default(),
            user: None,
            expires: 0,
        };
        let kinds = [Channel::Plain, Channel::Tls(None), Channel::Tls(Some(Arc::new(identity)))];
        assert_eq!(kinds.each_ref().map(Channel::kind), ChannelKind::ALL);
        assert_eq!(kinds.each_ref().map(Channel::is_tls), [false, true, true]);
        let named = kinds.map(|channel| channel.to_string());
        assert_eq!(named[..2], ["plain", "TLS"]);
        assert_eq!(named[2], format!("TLS, key sha256:{}", "ab".repeat(32)));
    }
}
