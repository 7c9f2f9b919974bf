use comity_rpc::limits::{AUTH_SYS_GROUPS_MAX, MACHINE_NAME_BYTES_MAX};
use comity_rpc::{AuthStat, Flavor, OpaqueAuth};
use comity_vfs::{Cred, Gid, Uid, Wire};
use comity_xdr::Decoder;

use crate::Credential;

/// A credential parsed in place: it borrows from the call, and making one allocates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CredentialRef<'a> {
    /// The caller says nothing about itself.
    None,
    /// A user with groups (AUTH_SYS).
    Sys(AuthSysRef<'a>),
    /// The credential cannot be used, for this reason.
    Unusable(AuthStat),
}

/// The user and the groups of an AUTH_SYS credential. The stamp and the machine's name are left
/// out, for they say nothing about the caller (RFC 5531, appendix A).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuthSysRef<'a> {
    uid: u32,
    gid: u32,
    /// The supplementary groups as they travel, four bytes each.
    gids: &'a [u8],
}

impl<'a> CredentialRef<'a> {
    /// Parses a credential. The verifier of both flavors is empty and is not looked at, as RFC 5531
    /// (8.2) allows.
    #[must_use]
    #[inline]
    pub fn parse(credential: &OpaqueAuth<'a>) -> Self {
        match credential.flavor {
            Flavor::NONE => Self::None,
            Flavor::SYS => AuthSysRef::parse(credential.body.0)
                .map_or(Self::Unusable(AuthStat::BadCred), Self::Sys),
            _ => Self::Unusable(AuthStat::RejectedCred),
        }
    }

    /// An AUTH_SYS credential without supplementary groups.
    #[must_use]
    pub const fn sys(uid: u32, gid: u32) -> Self {
        Self::Sys(AuthSysRef { uid, gid, gids: &[] })
    }

    /// Returns the credential in memory of its own.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn credential(&self) -> Result<Credential, AuthStat> {
        match self {
            Self::None => Ok(Credential::None),
            Self::Sys(sys) => Ok(Credential::Sys(sys.cred())),
            Self::Unusable(why) => Err(*why),
        }
    }
}

/// A parsed credential finds the one that was kept.
impl PartialEq<Credential> for CredentialRef<'_> {
    #[inline]
    fn eq(&self, kept: &Credential) -> bool {
        match (self, kept) {
            (Self::None, Credential::None) => true,
            (Self::Sys(sys), Credential::Sys(cred)) => sys.is(cred),
            _ => false,
        }
    }
}

impl<'a> AuthSysRef<'a> {
    #[inline]
    fn parse(body: &'a [u8]) -> Option<Self> {
        let mut body = Decoder::new(body);
        let _stamp = body.value::<u32>().ok()?;
        let _machine = body.opaque(MACHINE_NAME_BYTES_MAX).ok()?;
        let (uid, gid) = (body.value().ok()?, body.value().ok()?);
        let count = body.value::<u32>().ok()?;
        let gids = body.rest();
        let is_whole = count <= AUTH_SYS_GROUPS_MAX && gids.len() == 4 * count as usize;
        is_whole.then_some(Self { uid, gid, gids })
    }

    fn groups(&self) -> impl Iterator<Item = Gid<Wire>> {
        let gids = self.gids.as_chunks::<4>().0.iter();
        gids.map(|gid| Gid::new(u32::from_be_bytes(*gid)))
    }

    fn cred(&self) -> Cred<Wire> {
        Cred::new(Uid::new(self.uid), Gid::new(self.gid)).with_groups(self.groups())
    }

    #[inline]
    fn is(&self, cred: &Cred<Wire>) -> bool {
        self.uid == cred.uid.number()
            && self.gid == cred.gid.number()
            && self.gids.len() == 4 * cred.groups.len()
            && self.groups().eq(cred.groups.iter().copied())
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
    fn stamp_and_machine_do_not_make_another_caller() {
        let kept = parsed(&body(1, b"host", 5, 6, &[7, 8])).credential().unwrap();
        assert_eq!(parsed(&body(2, b"other host", 5, 6, &[7, 8])), kept);
        for (uid, gid, gids) in
            [(4, 6, &[7, 8][..]), (5, 7, &[7, 8]), (5, 6, &[7]), (5, 6, &[7, 9]), (5, 6, &[8, 7])]
        {
            assert_ne!(parsed(&body(1, b"host", uid, gid, gids)), kept);
        }
        assert_ne!(CredentialRef::None, kept);
        assert_ne!(CredentialRef::sys(5, 6), kept);
    }

    proptest! {
        /// The parser in place takes exactly the bodies that the decoder of AUTH_SYS takes.
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
                Some(cred) => prop_assert_eq!(parsed(&body), Credential::Sys(cred)),
                None => prop_assert_eq!(parsed(&body), CredentialRef::Unusable(AuthStat::BadCred)),
            }
        }
    }
}
