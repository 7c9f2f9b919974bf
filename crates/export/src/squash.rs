use comity_credential::Credential;
use comity_vfs::{Cred, Disk, Gid, Uid, Wire};

/// What `(uid_t) -1` means to system calls that take an id: "leave it as it is". Under it a caller
/// would act as whoever called before, so it never acts.
const NO_ID: u32 = u32::MAX;

/// Whose ids are replaced by the anonymous ones (exports(5): `root_squash`, `all_squash`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Squash {
    /// Nobody's.
    None,
    /// The superuser's and the superuser's group.
    #[default]
    Root,
    /// Everybody's.
    All,
}

impl Squash {
    /// Under which ids on disk a credential acts; `anonymous` stands in for what is squashed.
    #[must_use]
    pub fn admit(self, credential: &Credential, anonymous: &Cred<Disk>) -> Cred<Disk> {
        match (self, credential) {
            (Self::All, _) | (_, Credential::None) => anonymous.clone(),
            (_, Credential::Sys(cred)) => map(
                cred,
                |uid| if self.replaces(uid.number()) { anonymous.uid } else { uid.carried_over() },
                |gid| if self.replaces(gid.number()) { anonymous.gid } else { gid.carried_over() },
            ),
        }
    }

    const fn replaces(self, id: u32) -> bool {
        match self {
            _ if id == NO_ID => true,
            Self::None => false,
            Self::Root => id == 0,
            Self::All => true,
        }
    }
}

fn map(
    cred: &Cred<Wire>,
    uid: impl Fn(Uid<Wire>) -> Uid<Disk>,
    gid: impl Fn(Gid<Wire>) -> Gid<Disk>,
) -> Cred<Disk> {
    Cred::new(uid(cred.uid), gid(cred.gid)).with_groups(cred.groups.iter().map(|&g| gid(g)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cred<S: comity_vfs::Side>(uid: u32, gid: u32, groups: &[u32]) -> Cred<S> {
        Cred::new(Uid::new(uid), Gid::new(gid)).with_groups(groups.iter().copied().map(Gid::new))
    }

    #[test]
    fn the_superuser_and_its_group_are_squashed_wherever_they_stand() {
        let nobody = cred(65_534, 65_534, &[]);
        let admit = |squash: Squash, c| squash.admit(&Credential::Sys(c), &nobody);
        assert_eq!(admit(Squash::Root, cred(0, 0, &[0, 5])), cred(65_534, 65_534, &[65_534, 5]));
        assert_eq!(admit(Squash::Root, cred(7, 0, &[])), cred(7, 65_534, &[]));
        assert_eq!(admit(Squash::Root, cred(7, 8, &[9])), cred(7, 8, &[9]));
        assert_eq!(admit(Squash::None, cred(0, 0, &[0])), cred(0, 0, &[0]));
        assert_eq!(admit(Squash::None, cred(NO_ID, 8, &[NO_ID])), cred(65_534, 8, &[65_534]));
        assert_eq!(admit(Squash::All, cred(7, 8, &[9])), nobody);
        assert_eq!(Squash::None.admit(&Credential::None, &nobody), nobody);
    }
}
