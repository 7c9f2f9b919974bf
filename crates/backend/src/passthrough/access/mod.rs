//! Whose rights a call has, and what the kernel decides about them.

pub(crate) mod access_cache;
pub(crate) mod thread_credentials;
