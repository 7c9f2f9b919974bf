//! Open objects of handles, and the bounded cache of these.

pub(crate) mod cache;
pub(crate) mod descriptors;
pub(crate) mod ghost_cache;
pub(crate) mod kernel_delegation;
pub(crate) mod node;
pub(crate) mod open_handle;
pub(crate) mod path_cache;
pub(crate) mod search;
pub(crate) mod siblings;
