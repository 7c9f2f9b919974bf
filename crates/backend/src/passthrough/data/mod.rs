//! Data of files, and barriers.

pub(crate) mod barrier;
pub(crate) mod commit;
pub(crate) mod range;
pub(crate) mod read_write;
pub(crate) mod space;
