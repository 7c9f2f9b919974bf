/// The ids that are replaced by the anonymous ones (exports(5): `root_squash`, `all_squash`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Squash {
    /// No id is squashed.
    None,
    /// The superuser's and the superuser's group.
    #[default]
    Root,
    /// Every id is squashed.
    All,
}

/// No user and no group: what `(uid_t) -1` means to every system call that takes an id. It never
/// acts.
pub(crate) const NO_ID: u32 = u32::MAX;

impl Squash {
    /// Returns whether an id is replaced.
    pub(crate) const fn replaces(self, id: u32) -> bool {
        match self {
            _ if id == NO_ID => true,
            Self::None => false,
            Self::Root => id == 0,
            Self::All => true,
        }
    }
}
