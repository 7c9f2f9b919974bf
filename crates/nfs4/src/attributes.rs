//! Attributes: which there are, how they are said, how they are set (RFC 8881, 5).

mod acl;
mod owner;
mod said;
mod settings;
mod supported;
mod written;

pub(crate) use said::{Subject, What, change_info, fattr4};
pub(crate) use settings::Settings;
pub(crate) use supported::{EXCLUSIVE, READABLE_NOT, supported};
