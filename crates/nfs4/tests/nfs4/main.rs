//! NFSv4 as a client sees it: whole RPC records go in and come out. The file system is the memory
//! backend.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that panics has failed")]

mod attributes;
mod barriers;
mod border;
mod callbacks;
mod children;
mod cloaks;
mod copies;
mod directories;
mod directory_policies;
mod directory_storm;
mod emptying;
mod extended;
#[path = "../../../nfs3/tests/nfs3/granted.rs"]
mod granted;
mod granted_operations;
mod hostile;
mod hunt;
mod moved_leases;
mod nameless;
mod notifications;
mod openers;
mod opens;
mod owners;
mod pairs;
mod reaching;
mod referrals;
mod reload;
mod rendering;
mod repeats;
mod rights;
mod roots;
mod script;
mod session;
mod shared_files;
mod sparse;
mod sparse_listing;
mod strangers;
mod transcripts;
mod transfers;
mod undone;
mod words;
mod world;
