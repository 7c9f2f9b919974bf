//! KeyNote trust management (RFC 2704): assertions and what they say.
//!
//! **Answers:** what an assertion says: who authorizes, who is licensed, under which conditions;
//! and how the same is written in one canonical form.
//!
//! **May not know:** files, exports, sessions, the wire; the time, which is an attribute of the
//! action that is asked about.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod assertion;
mod fields;
mod lexer;
pub mod limits;
mod parse_error;
mod parser;
mod printer;
pub mod tree;

pub use assertion::Assertion;
pub use parse_error::ParseError;
