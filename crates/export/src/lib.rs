//! What is offered to whom.
//!
//! **Answers:** which exports there are, which of them a caller meets under which rules, and what
//! one caller sees of one export during one request: the [`View`].
//!
//! The order of decisions is fixed and stands in `view.rs` only: admit, map in, cloak, do, cloak
//! the results, map out. Protocol code holds a `View` and never a file system; a handle off the
//! wire must be admitted before it is a [`Node`].
//!
//! **May not know:** protocols and their versions, sockets, which backend a file system is.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod barrier;
mod check;
mod check_rooms;
mod check_volumes;
mod client;
mod config;
mod cookie;
mod domain;
mod explain;
mod exports;
mod finding;
mod gate;
pub mod limits;
mod load;
mod mount_point;
mod names;
mod netgroup;
mod offer;
mod offered;
mod origin;
mod owners;
mod pass;
mod path;
mod plan;
mod pseudo;
mod resolver;
mod seal;
mod server_settings;
mod sources;
mod tally;
mod view;
mod visitor;
mod wildcard;

pub use barrier::Barrier;
pub use client::Client;
pub use comity_cloak::Cloak;
pub use comity_idmap::{Ids, Owner, Squash};
pub use config::{NfsVersion, ServerSettings};
pub use cookie::Position;
pub use explain::{Decision, Explanation, Operation, Question, explain};
pub use finding::{Finding, Place, Severity};
pub use load::{ExportRequest, Open, load};
pub use netgroup::{Members, Netgroups};
pub use offer::{Fsid, Settings};
pub use offered::Offered;
pub use origin::Origin;
pub use pass::ROOMS;
pub use plan::{Export, ExportId, Exports, Plan, Rules};
pub use pseudo::{Found, Pseudo, PseudoNode};
pub use resolver::{Resolver, SystemResolver, Unresolved};
pub use seal::{HandleKey, SealedHandle, derived_key};
pub use sources::{Configuration, Source, Sources};
pub use tally::{Counts, Tally};
pub use view::{Door, ListingPart, Node, Outside, Refusal, Seen, SeenMade, View, VisitSeen};
pub use visitor::Visitor;
pub use wildcard::Wildcard;
