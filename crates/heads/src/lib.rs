//! The head that takes an export which has none.
//!
//! **Answers:** whether a head of a cluster that sees an export without a head takes it now.
//!
//! **May not know:** how heads learn of each other, and how an export is taken. It does no I/O and
//! reads no clock.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

pub mod simulation;
mod succession;

pub use succession::{AddressHead, HeadlessExport, HomeHead, OwnHead, RANK_PAUSE, Succession};
