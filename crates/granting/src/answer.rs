use comity_programs::CallFailure;
use comity_proto::grants::{Status, Text};

/// The failure of a caller who has proved no key.
pub(crate) fn no_key() -> CallFailure {
    let text = "the connection proved no key: connect with TLS and a key of your own";
    CallFailure::new(Status::Denied, text)
}

/// The failure if a path was not found, or the caller may not know of it.
pub(crate) fn of_path(status: comity_vfs::Status) -> CallFailure {
    let kind = match status {
        comity_vfs::Status::NoEnt | comity_vfs::Status::Stale => Status::NotFound,
        comity_vfs::Status::Acces | comity_vfs::Status::Perm => Status::Denied,
        _ => Status::Fault,
    };
    CallFailure::new(kind, format!("the path cannot be reached: {status}"))
}

/// Decodes a text from the wire.
pub(crate) fn read<'a>(text: &Text<'a>) -> Result<&'a str, CallFailure> {
    let not_text = |_| CallFailure::new(Status::Invalid, "the text is not UTF-8");
    std::str::from_utf8(text.0).map_err(not_text)
}
