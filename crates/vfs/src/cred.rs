use std::sync::Arc;

use crate::{Gid, IdDomain, Uid};

/// The ids that a call is made under, on side `S`. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Cred<S: IdDomain> {
    /// The user.
    pub uid: Uid<S>,
    /// The primary group.
    pub gid: Gid<S>,
    /// Supplementary groups, in the order given; the primary group need not be among them.
    pub groups: Arc<[Gid<S>]>,
}

impl<S: IdDomain> Cred<S> {
    /// The superuser.
    #[must_use]
    pub fn root() -> Self {
        Self::new(Uid::new(0), Gid::new(0))
    }

    /// A user with a primary group and no others.
    #[must_use]
    pub fn new(uid: Uid<S>, gid: Gid<S>) -> Self {
        Self { uid, gid, groups: Arc::default() }
    }

    /// The same user with these supplementary groups.
    #[must_use]
    pub fn with_groups(self, groups: impl IntoIterator<Item = Gid<S>>) -> Self {
        Self { groups: groups.into_iter().collect(), ..self }
    }

    /// Returns whether `gid` is the primary or a supplementary group.
    #[must_use]
    #[inline]
    pub fn is_member(&self, gid: Gid<S>) -> bool {
        self.gid == gid || self.groups.contains(&gid)
    }

    /// Returns whether this is the superuser of its side.
    #[must_use]
    #[inline]
    pub fn is_root(&self) -> bool {
        self.uid.number() == 0
    }
}
