//! The load of this server: a sample each second, and reports about it.

mod host_files;
mod message;
mod report;
mod sampler;

pub(crate) use message::{heard, told};
pub(crate) use report::{append, load_json};
pub(crate) use sampler::{Load, LoadService, LoadSources, parts_by_export, server_load};
