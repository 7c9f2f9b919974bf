use crate::{Gid, Side, Uid};

/// A POSIX ACL (POSIX.1e draft 17, as Linux stores it), with ids on side `S`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Acl<S: Side> {
    /// The entries, in the order in which they are stored.
    pub entries: Vec<AclEntry<S>>,
}

/// One entry of an ACL: to whom it applies, and the permission digit (4 read, 2 write, 1 execute).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AclEntry<S: Side> {
    /// To whom it applies.
    pub tag: AclTag<S>,
    /// What it permits: 0 to 7.
    pub permissions: u8,
}

/// To whom an ACL entry applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AclTag<S: Side> {
    /// The file's owner.
    UserObj,
    /// This user.
    User(Uid<S>),
    /// The file's group.
    GroupObj,
    /// This group.
    Group(Gid<S>),
    /// The most that named users and all groups get.
    Mask,
    /// Everybody else.
    Other,
}

/// Which of an object's two ACLs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AclKind {
    /// The one that decides about the object itself.
    Access,
    /// The one that new entries of a directory inherit.
    Default,
}
