//! XDR (RFC 4506): bytes to values and back.
//!
//! **Answers:** which value some bytes stand for, and which bytes stand for a value. Decoding
//! borrows from the record, is total (every input gives a value or a [`Malformed`]) and bounded
//! (a length is checked against the bytes that are left before it is used). Encoding goes into
//! an [`Encoder`]: one reused buffer, with file data by reference.
//!
//! **May not know:** calls, programs, sockets.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic)
)]

mod decode;
mod encode;
mod error;
mod primitive;

pub use comity_xdr_derive::{Decode, Encode};
pub use decode::{Decode, Decoder};
pub use encode::{Checkpoint, Encode, Encoder, FileSegment, RecordStart, Reserved, Word, encoded};
pub use error::Malformed;
pub use primitive::{Counted, Opaque};

/// Bytes of padding that follow `length` bytes of opaque data (RFC 4506, 3: items are multiples
/// of four bytes).
#[must_use]
pub const fn padding(length: usize) -> usize {
    (4 - length % 4) % 4
}
