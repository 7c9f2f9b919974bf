//! Attributes, extended attributes and ACLs.

pub(crate) mod acl;
pub(crate) mod attr;
pub(crate) mod setattr;
pub(crate) mod xattr;
