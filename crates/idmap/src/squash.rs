/// The ids that are replaced by the anonymous ones (exports(5): `root_squash`, `all_squash`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Squash {
    /// No id is squashed.
    None,
    /// The ids of the superuser and of the superuser's group are squashed.
    #[default]
    Root,
    /// Every id is squashed.
    All,
}

/// The id -1, which means "no user" to system calls; no caller may act with it.
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
