use comity_proto::grants::{Status, TEXT_BYTES_MAX, Text};
use comity_rpc::{Done, Outcome};
use comity_xdr::{Encode, Encoder, Malformed, Opaque};

use crate::CallFailure;

/// Writes OK and the value, or the failure; returns the status.
pub fn answer<T: Encode>(reply: &mut Encoder, result: Result<T, CallFailure>) -> u32 {
    match result {
        Ok(value) => {
            reply.value(&Status::Ok);
            reply.value(&value);
            Status::Ok as u32
        }
        Err(failure) => {
            reply.value(&failure.status);
            reply.value(&text(&failure.text));
            failure.status as u32
        }
    }
}

/// Returns a text for the wire, shortened if it is too long.
#[must_use]
pub fn text(text: &str) -> Text<'_> {
    let end = text.floor_char_boundary(TEXT_BYTES_MAX as usize);
    Opaque(text.get(..end).unwrap_or_default().as_bytes())
}

/// Returns the outcome of a procedure with this status.
#[must_use]
pub fn done(status: Result<u32, Malformed>) -> Outcome {
    match status {
        Ok(status) => Outcome::Done(Done { status, export: None }),
        Err(_) => Outcome::GarbageArgs,
    }
}
