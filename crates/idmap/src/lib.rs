//! Maps ids of one domain to those of another (ROOM).
//!
//! **Answers:** which user and groups on disk the ids of a caller denote, and as which ids the
//! owner of a file is shown to that caller. Squashing comes first, then the range maps, of which
//! the first match applies, then the default for other ids (an extension of Spadavecchia & Zadok
//! 2002).
//!
//! It converts every structure with ids: credentials with supplementary groups, attributes,
//! attributes to set, ACL entries, owner strings (NFSv4).
//!
//! **May not know:** exports, addresses, files, configuration files (a rule has a number; the
//! reader of the configuration knows its line).
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
