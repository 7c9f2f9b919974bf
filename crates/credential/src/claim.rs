use comity_rpc::limits::{AUTH_SYS_GROUPS_MAX, MACHINE_NAME_BYTES_MAX};
use comity_rpc::{AuthStat, Flavor, OpaqueAuth};
use comity_vfs::{Cred, Gid, Uid, Wire};
use comity_xdr::Decoder;

use crate::Credential;

/// A credential that borrows from the call, so that parsing allocates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialRef<'a> {
    /// The caller claims no identity (AUTH_NONE).
    None,
    /// A user with groups (AUTH_SYS).
    Sys(AuthSysRef<'a>),
    /// The credential cannot be used, for this reason.
    Unusable(AuthStat),
}

/// The user and groups of an AUTH_SYS credential in their encoding: uid, gid, the number of
/// supplementary groups, and these. Stamp and machine name are omitted, because they do not
/// identify the caller (RFC 5531, appendix A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthSysRef<'a>(&'a [u8]);

/// An owned copy of a parsed credential, see [`CredentialRef::kept`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCredential(Claims);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Claims {
    None,
    Sys(Box<[u8]>),
    Unusable(AuthStat),
}

impl KeptCredential {
    /// Returns the parsed credential.
    #[must_use]
    pub const fn get(&self) -> CredentialRef<'_> {
        match &self.0 {
            Claims::None => CredentialRef::None,
            Claims::Sys(claims) => CredentialRef::Sys(AuthSysRef(claims)),
            Claims::Unusable(why) => CredentialRef::Unusable(*why),
        }
    }
}

impl CredentialRef<'static> {
    /// User and group nobody (65534), without supplementary groups.
    pub const NOBODY: Self =
        Self::Sys(AuthSysRef(&[0, 0, 0xff, 0xfe, 0, 0, 0xff, 0xfe, 0, 0, 0, 0]));
}

impl<'a> CredentialRef<'a> {
    /// Parses a credential. The verifier of both flavors is empty and is ignored, as RFC 5531 (8.2)
    /// allows.
    #[must_use]
    #[inline]
    pub fn parse(credential: &OpaqueAuth<'a>) -> Self {
        match credential.flavor {
            Flavor::NONE => Self::None,
            Flavor::SYS => AuthSysRef::parse(credential.body.0)
                .map_or(Self::Unusable(AuthStat::BadCred), Self::Sys),
            // This flavor is allowed only in a probe, whose procedure is NULL (RFC 9289, 4.1).
            Flavor::TLS => Self::Unusable(AuthStat::BadCred),
            _ => Self::Unusable(AuthStat::RejectedCred),
        }
    }

    /// Returns bytes that are equal exactly for credentials of the same caller; `None` for a
    /// credential that cannot be used.
    #[must_use]
    #[inline]
    pub const fn key(&self) -> Option<&'a [u8]> {
        match self {
            Self::None => Some(&[]),
            Self::Sys(AuthSysRef(claims)) => Some(claims),
            Self::Unusable(_) => None,
        }
    }

    /// Returns a copy for work that continues after the reply.
    #[must_use]
    pub fn kept(&self) -> KeptCredential {
        KeptCredential(match self {
            Self::None => Claims::None,
            Self::Sys(AuthSysRef(claims)) => Claims::Sys((*claims).into()),
            Self::Unusable(why) => Claims::Unusable(*why),
        })
    }

    /// Returns the owned credential.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn credential(&self) -> Result<Credential, AuthStat> {
        match self {
            Self::None => Ok(Credential::None),
            Self::Sys(sys) => sys.cred().map(Credential::Sys).ok_or(AuthStat::BadCred),
            Self::Unusable(why) => Err(*why),
        }
    }
}

impl<'a> AuthSysRef<'a> {
    #[inline]
    fn parse(body: &'a [u8]) -> Option<Self> {
        let mut body = Decoder::new(body);
        let _stamp = body.value::<u32>().ok()?;
        let _machine = body.opaque(MACHINE_NAME_BYTES_MAX).ok()?;
        let claims = body.rest();
        let (_, behind) = claims.split_first_chunk::<8>()?;
        let (count, gids) = behind.split_first_chunk::<4>()?;
        let count = u32::from_be_bytes(*count);
        let is_whole = count <= AUTH_SYS_GROUPS_MAX && gids.len() == 4 * count as usize;
        is_whole.then_some(Self(claims))
    }

    /// Returns the uid.
    #[must_use]
    #[inline]
    pub const fn uid(&self) -> u32 {
        match self.0.first_chunk() {
            Some(uid) => u32::from_be_bytes(*uid),
            // This cannot happen: the parser requires at least three words.
            None => u32::MAX,
        }
    }

    fn cred(&self) -> Option<Cred<Wire>> {
        let (words, _) = self.0.as_chunks::<4>();
        let [uid, gid, _count, gids @ ..] = words else { return None };
        let number = |word: &[u8; 4]| u32::from_be_bytes(*word);
        let cred = Cred::new(Uid::new(number(uid)), Gid::new(number(gid)));
        Some(cred.with_groups(gids.iter().map(|gid| Gid::new(number(gid)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use comity_rpc::AuthSys;
    use comity_xdr::{Counted, Encoder, Opaque};
    use proptest::prelude::*;

    fn body(stamp: u32, machine: &[u8], uid: u32, gid: u32, gids: &[u32]) -> Vec<u8> {
        let (machine_name, gids) = (Opaque(machine), Counted(gids.to_vec()));
        let mut encoder = Encoder::new();
        encoder.value(&AuthSys { stamp, machine_name, uid, gid, gids });
        encoder.bytes().to_vec()
    }

    fn parsed(body: &[u8]) -> CredentialRef<'_> {
        CredentialRef::parse(&OpaqueAuth { flavor: Flavor::SYS, body: Opaque(body) })
    }

    #[test]
    fn stamp_and_machine_name_do_not_identify_a_caller() {
        let body_of_one = body(1, b"host", 5, 6, &[7, 8]);
        let one = parsed(&body_of_one).key();
        assert!(one.is_some());
        assert_eq!(parsed(&body(2, b"other host", 5, 6, &[7, 8])).key(), one);
        for (uid, gid, gids) in
            [(4, 6, &[7, 8][..]), (5, 7, &[7, 8]), (5, 6, &[7]), (5, 6, &[7, 9]), (5, 6, &[8, 7])]
        {
            assert_ne!(parsed(&body(1, b"host", uid, gid, gids)).key(), one);
        }
        assert_ne!(CredentialRef::None.key(), one);
        assert_eq!(CredentialRef::Unusable(AuthStat::BadCred).key(), None);
    }

    #[test]
    fn nobody_is_65534_in_no_other_group() {
        let nobody = Credential::Sys(Cred::new(Uid::new(65_534), Gid::new(65_534)));
        assert_eq!(CredentialRef::NOBODY.credential(), Ok(nobody));
        let body = body(0, b"", 65_534, 65_534, &[]);
        assert_eq!(parsed(&body).key(), CredentialRef::NOBODY.key());
    }

    proptest! {
        /// The parser in place accepts exactly the bodies that the decoder of AUTH_SYS accepts.
        #[test]
        fn the_parser_agrees_with_the_decoder(
            machine in proptest::collection::vec(any::<u8>(), 0..9),
            ids in any::<(u32, u32, u32)>(),
            gids in proptest::collection::vec(any::<u32>(), 0..=16),
            change in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
            cut in 0..6_usize,
        ) {
            let mut body = body(ids.0, &machine, ids.1, ids.2, &gids);
            if let Some((at, byte)) = change {
                let at = at.index(body.len());
                body[at] = byte;
            }
            body.truncate(body.len() - cut);
            let decoded = Decoder::whole::<AuthSys<'_>>(&body).ok().map(|sys| {
                Cred::new(Uid::new(sys.uid), Gid::new(sys.gid))
                    .with_groups(sys.gids.0.into_iter().map(Gid::new))
            });
            match decoded {
                Some(cred) => {
                    prop_assert_eq!(parsed(&body).credential(), Ok(Credential::Sys(cred)));
                }
                None => prop_assert_eq!(parsed(&body), CredentialRef::Unusable(AuthStat::BadCred)),
            }
        }
    }
}
