//! ROOM: ids of one domain in terms of another.
//!
//! **Answers:** which user and groups on disk a caller's numbers stand for, and by which numbers an
//! owner on disk is shown to that caller: squashing first, then range maps, first match in the
//! order given, then what is to become of the rest (Spadavecchia & Zadok 2002, carried further).
//!
//! It owns every shape in which an id travels: credentials with supplementary groups, attributes,
//! attributes to set, ACL entries, owners as text (NFSv4).
//!
//! **May not know:** exports, addresses, files, configuration files (a rule has a number; whoever
//! read it knows the line).
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod ids;
mod map;
mod outcome;
mod owner;
mod squash;

pub use comity_ranges::Range;
pub use ids::{Caller, Denied, Ids, unmapped};
pub use map::{Conflict, IdMap, IdMapBuilder, Inverse, MapDefault, Rule, Step};
pub use outcome::{IdOutcome, Unmapped};
pub use owner::{NameError, Owner, Owners, OwnersBuilder};
pub use squash::Squash;
