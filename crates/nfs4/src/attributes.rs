//! Attributes: the list of supported ones, their encoding and their decoding (RFC 8881, 5).

mod absent;
mod acl;
mod decode;
mod delegated_attr;
mod encode;
mod owner;
mod placement;
mod supported;

pub(crate) use absent::{absent_entry, absent_fattr4};
pub(crate) use decode::Settings;
pub(crate) use encode::{Subject, What, change_info, fattr4};
pub(crate) use supported::{EXCLUSIVE, READABLE_NOT, supported};
