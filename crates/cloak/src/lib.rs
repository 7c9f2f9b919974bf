//! Cloaks: whether a caller may know that a file exists.
//!
//! **Answers:** whether a file, by its owner, group and mode, is visible to a caller, and which
//! entry decided that (Spadavecchia & Zadok 2002, section 2.2, in the rule that
//! docs/semantics.md states).
//!
//! **May not know:** names, directories, exports, protocols; what is done about a hidden file.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod cloak;
mod entry;

pub use cloak::{Cloak, Verdict};
pub use comity_ranges::Range;
pub use entry::{CloakEntry, Mask, Owned, Sign};
