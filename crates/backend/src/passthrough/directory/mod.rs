//! Operations on names: look-up, listing, creation, rename and removal.

pub(crate) mod change;
pub(crate) mod create;
pub(crate) mod link;
pub(crate) mod lookup;
pub(crate) mod place;
pub(crate) mod readdir;
pub(crate) mod readdir_cursor;
pub(crate) mod remove;
pub(crate) mod snapshot;
pub(crate) mod thread_cwd;
