//! The identity of a caller and its proof.
//!
//! **Answers:** which identity a call claims by the flavor of its credential, how it is proved, by
//! which channel it arrived, and how the caller can be called back. A call claims nothing
//! (AUTH_NONE) or unproved ids (AUTH_SYS); a channel may prove a key (RPC-with-TLS).
//!
//! **May not know:** exports, what the caller may do, its ids on disk.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod channel;
mod claim;
mod grantee;
mod origin;

pub use channel::{Channel, ChannelKind, KeyId, PeerIdentity, PeerKey};
pub use claim::{AuthSysRef, CredentialRef, KeptCredential};
pub use grantee::Grantee;
pub use origin::{Origin, OriginChannel};

pub use comity_keys::PublicKey;
pub use comity_rpc::{
    Admission, AuthStat, Backchannel, Flavor, Gate, GateRefusal, OpaqueAuth, network_of,
};

use comity_vfs::{Cred, Wire};

/// The identity that a call claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credential {
    /// No identity.
    None,
    /// An unproved user with groups (AUTH_SYS).
    Sys(Cred<Wire>),
}

impl Credential {
    /// Decodes a credential. The verifier of both flavors is empty and is ignored, as RFC 5531
    /// (8.2) allows.
    ///
    /// # Errors
    /// [`AuthStat::BadCred`] if its body is malformed, [`AuthStat::RejectedCred`] for a flavor that
    /// is not supported.
    pub fn parse(credential: &OpaqueAuth<'_>) -> Result<Self, AuthStat> {
        CredentialRef::parse(credential).credential()
    }

    /// Its flavor.
    #[must_use]
    pub const fn flavor(&self) -> Flavor {
        match self {
            Self::None => Flavor::NONE,
            Self::Sys(_) => Flavor::SYS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_rpc::AuthSys;
    use comity_vfs::{Gid, Uid};
    use comity_xdr::{Counted, Encoder, Opaque};

    #[test]
    fn auth_sys_carries_user_group_and_groups() {
        let (stamp, machine_name) = (1, Opaque(&b"host"[..]));
        let mut encoder = Encoder::new();
        let gids = Counted(vec![20, 30]);
        encoder.value(&AuthSys { stamp, machine_name, uid: 1000, gid: 100, gids });
        let credential = OpaqueAuth { flavor: Flavor::SYS, body: Opaque(encoder.bytes()) };
        let expected = Cred::new(Uid::new(1000), Gid::new(100)).with_groups([20, 30].map(Gid::new));
        assert_eq!(Credential::parse(&credential), Ok(Credential::Sys(expected)));
    }

    #[test]
    fn a_truncated_credential_is_bad_and_other_flavors_are_rejected() {
        let parse = |flavor| Credential::parse(&OpaqueAuth { flavor, body: Opaque(&[0; 7]) });
        assert_eq!(parse(Flavor::SYS), Err(AuthStat::BadCred));
        assert_eq!(parse(Flavor::GSS), Err(AuthStat::RejectedCred));
        assert_eq!(parse(Flavor::NONE), Ok(Credential::None));
    }
}
