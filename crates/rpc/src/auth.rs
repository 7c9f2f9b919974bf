use comity_xdr::{Counted, Decode, Encode, Opaque};

use crate::limits::{AUTH_BYTES_MAX, AUTH_SYS_GROUPS_MAX, MACHINE_NAME_BYTES_MAX};

/// The authentication flavor of a caller, by number (RFC 5531, 8.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub struct Flavor(pub u32);

impl Flavor {
    /// The call has no identity.
    pub const NONE: Self = Self(0);
    /// The call claims the numbers of its user and groups, unproven.
    pub const SYS: Self = Self(1);
    /// The call uses RPCSEC_GSS.
    pub const GSS: Self = Self(6);
    /// The call is a probe for TLS (RFC 9289).
    pub const TLS: Self = Self(7);
}

/// A credential or verifier on the wire: `opaque_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct OpaqueAuth<'a> {
    /// The flavor.
    pub flavor: Flavor,
    /// The body, in the form of that flavor.
    pub body: Opaque<'a, AUTH_BYTES_MAX>,
}

impl OpaqueAuth<'static> {
    /// AUTH_NONE with an empty body.
    pub const NONE: Self = Self { flavor: Flavor::NONE, body: Opaque(&[]) };
}

/// The verifier of a reply, by which the caller authenticates the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ReplyVerifier {
    /// Flavor AUTH_NONE without a body: the verifier of replies to AUTH_NONE and AUTH_SYS.
    #[default]
    Empty,
    /// Any other verifier: STARTTLS (RFC 9289, 4.1), a checksum of RPCSEC_GSS (RFC 2203, 5.3.3.2).
    Filled(Box<FilledVerifier>),
}

/// A verifier with a flavor and a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilledVerifier {
    flavor: Flavor,
    body: Vec<u8>,
}

impl FilledVerifier {
    /// Returns the verifier in its wire form.
    #[must_use]
    pub fn auth(&self) -> OpaqueAuth<'_> {
        OpaqueAuth { flavor: self.flavor, body: Opaque(&self.body) }
    }
}

impl ReplyVerifier {
    /// Makes a verifier with a body; `None` if the body has more than [`AUTH_BYTES_MAX`] bytes.
    #[must_use]
    pub fn filled(flavor: Flavor, body: &[u8]) -> Option<Self> {
        let filled = || Self::Filled(Box::new(FilledVerifier { flavor, body: body.to_vec() }));
        (body.len() <= AUTH_BYTES_MAX as usize).then(filled)
    }
}

/// The body of an AUTH_SYS credential (RFC 5531, appendix A).
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AuthSys<'a> {
    /// An arbitrary number.
    pub stamp: u32,
    /// The name that the caller's machine gives itself.
    pub machine_name: Opaque<'a, MACHINE_NAME_BYTES_MAX>,
    /// The caller's user number.
    pub uid: u32,
    /// The caller's primary group.
    pub gid: u32,
    /// Its supplementary groups.
    pub gids: Counted<u32, AUTH_SYS_GROUPS_MAX>,
}

/// Why a credential was refused: `auth_stat` (RFC 5531, 9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum AuthStat {
    /// The credential is malformed.
    BadCred = 1,
    /// The client must begin again.
    RejectedCred = 2,
    /// The verifier is malformed.
    BadVerf = 3,
    /// The verifier is old or was used.
    RejectedVerf = 4,
    /// The server requires a stronger flavor.
    TooWeak = 5,
    /// The client's reply verifier is invalid.
    InvalidResp = 6,
    /// The reason is unknown.
    Failed = 7,
}
