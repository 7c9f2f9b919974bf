//! The ids under which calls reach the kernel, and its verdicts about rights.

pub(crate) mod access_cache;
pub(crate) mod thread_credentials;
