//! The ids under which system calls are made, and the kernel's decisions about rights.

pub(crate) mod access_cache;
pub(crate) mod thread_credentials;
