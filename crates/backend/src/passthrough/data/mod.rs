//! Contents of files, and when they are on stable storage.

pub(crate) mod barrier;
pub(crate) mod commit;
pub(crate) mod range;
pub(crate) mod read_write;
pub(crate) mod space;
pub(crate) mod sync_errors;
