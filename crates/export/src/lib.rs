//! Exports: the directories that are offered, and the rules under which clients use them.
//!
//! **Answers:** which exports there are, which exports a caller may use and under which rules, and
//! what a caller sees of an export during one request: the [`View`].
//!
//! The order of decisions is fixed, and only `view.rs` contains it: admit the caller, map its ids
//! to the disk, apply the cloak, do the operation, apply the cloak to the results, map their ids to
//! the wire. Protocol code has a `View` and never a file system; a handle from the wire must be
//! admitted before it becomes a [`Node`].
//!
//! **May not know:** protocols and their versions, sockets, the kind of backend.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod absent;
mod admission;
mod barrier;
mod candidate;
mod ceph_source;
mod channels;
mod check;
mod check_ceph;
mod check_idmap;
mod check_volumes;
mod client;
mod config;
mod config_reader;
mod configuration;
mod cookie;
mod counters;
mod diagnostic;
mod directory_delegations;
mod domain;
mod explain;
mod export;
mod export_id;
mod export_mark;
mod export_spec;
mod exports;
mod file_text;
mod gate;
mod granted_access;
mod handle_mac;
mod host_cache;
mod key_identity;
mod layout_callers;
pub mod limits;
mod load;
mod mount_point;
mod netgroup;
mod owner_names;
mod path;
mod peer;
mod peer_server;
mod peer_servers;
mod placement;
mod plan;
mod proof;
mod pseudo;
mod reasons;
mod referral;
mod refusal;
mod resolved_caller;
mod resolver;
mod rule_source;
mod rules;
mod rules_version;
mod server_settings;
mod sources;
mod true_paths;
mod view;
mod visible_export;
mod whereabouts;
mod wildcard;

pub use absent::Absent;
pub use barrier::Barrier;
pub use candidate::Candidate;
pub use ceph_source::CephSource;
pub use channels::Channels;
pub use client::Client;
pub use comity_cloak::Cloak;
pub use comity_idmap::{Ids, Owner, Squash};
pub use configuration::Configuration;
pub use cookie::Position;
pub use counters::{ClientCounters, Counts};
pub use diagnostic::{Diagnostic, Location, Severity};
pub use directory_delegations::{DirectoryDelegations, DirectoryGrants, DirectoryWriters};
pub use explain::{Decision, Explanation, Operation, Question, explain};
pub use export::Export;
pub use export_id::ExportId;
pub use export_mark::ExportMark;
pub use export_spec::{Fsid, Settings};
pub use handle_mac::{HandleKey, SealedHandle, derived_key};
pub use load::{ExportRequest, Open, load};
pub use netgroup::{Members, Netgroups};
pub use peer::RpcPeer;
pub use peer_server::PeerServer;
pub use placement::{DataServerSpec, PlacementSpec};
pub use plan::{Exports, Plan};
pub use proof::{CertificateProof, Proof};
pub use pseudo::{Found, Pseudo, PseudoNode};
pub use referral::{Referral, ServedAt};
pub use refusal::{Referred, Refusal};
pub use resolved_caller::{KEYS, MAPS_AND_CLOAKS};
pub use resolver::{Resolver, SystemResolver, Unresolved};
pub use rule_source::RuleSource;
pub use rules::{KeyUse, Rules};
pub use server_settings::{NfsVersion, ServerSettings};
pub use sources::{ReadAuthorities, Source, Sources};
pub use view::{
    ChangeUnderWay, ChangedPlace, ChangesBy, Clearance, DirectoryClearance, DirectoryHolders, Door,
    ListingPart, NameChange, Node, Outside, Seen, SeenMade, Turns, View, VisitSeen,
};
pub use visible_export::VisibleExport;
pub use whereabouts::{FindMoved, Whereabouts};
pub use wildcard::Wildcard;
