use comity_proto::grants::{Status, TEXT_BYTES_MAX, Text};
use comity_xdr::{Encode, Encoder, Opaque};

/// The status of a call that failed, with a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallFailure {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl CallFailure {
    pub(crate) fn new(status: Status, text: impl ToString) -> Self {
        Self { status, text: text.to_string() }
    }

    /// The caller has proved no key.
    pub(crate) fn no_key() -> Self {
        let text = "the connection proved no key: connect with TLS and a key of your own";
        Self::new(Status::Denied, text)
    }

    /// The path was not found, or the caller may not know of it.
    pub(crate) fn of_path(status: comity_vfs::Status) -> Self {
        let kind = match status {
            comity_vfs::Status::NoEnt | comity_vfs::Status::Stale => Status::NotFound,
            comity_vfs::Status::Acces | comity_vfs::Status::Perm => Status::Denied,
            _ => Status::Fault,
        };
        Self::new(kind, format!("the path cannot be reached: {status}"))
    }
}

/// Writes OK and the value, or the failure; returns the status.
pub(crate) fn answer<T: Encode>(reply: &mut Encoder, result: Result<T, CallFailure>) -> u32 {
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

/// A text for the wire, shortened if it is too long.
pub(crate) fn text(text: &str) -> Text<'_> {
    let mut end = text.len().min(TEXT_BYTES_MAX as usize);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    Opaque(text.get(..end).unwrap_or_default().as_bytes())
}

/// Decodes a text from the wire.
pub(crate) fn read<'a>(text: &Text<'a>) -> Result<&'a str, CallFailure> {
    let not_text = |_| CallFailure::new(Status::Invalid, "the text is not UTF-8");
    std::str::from_utf8(text.0).map_err(not_text)
}
