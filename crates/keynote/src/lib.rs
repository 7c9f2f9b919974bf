//! KeyNote trust management (RFC 2704): assertions, who signed them, and what follows from them.
//!
//! **Answers:** what an assertion says: who authorizes, who is licensed, under which conditions;
//! what its canonical text is; whether its authorizer signed it; which rights follow from a set of
//! assertions for an action, why, and until when.
//!
//! **May not know:** files, exports, sessions, the wire; the time, which is an attribute of the
//! action; which assertions were revoked.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod assertion;
mod attributes;
mod digest;
mod evaluate;
mod fields;
mod fixed;
mod grant;
mod index;
mod lexer;
pub mod limits;
mod parse_error;
mod parser;
mod pattern;
mod policy;
mod prepared;
mod principal;
mod printer;
mod rights;
mod signed;
pub mod tree;

pub use assertion::Assertion;
pub use attributes::Attributes;
pub use digest::{AssertionDigest, NoDigest};
pub use evaluate::{
    ClauseReport, Evaluation, Exhausted, LinkReport, NOW, OrderedValues, Query, Reason,
    RuntimeError, Validity,
};
pub use grant::{Grant, GrantError};
pub use index::{Need, NeededValue};
pub use parse_error::ParseError;
pub use policy::PolicyAssertion;
pub use prepared::PreparedAssertion;
pub use principal::Principal;
pub use rights::{Rights, UnknownRights};
pub use signed::{SignedAssertion, UnsignedReason, UnverifiedReason, sign};
