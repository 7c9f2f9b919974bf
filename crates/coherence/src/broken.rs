use comity_vfs::Status;

/// Returns the status of a reply whose barrier failed. It must not suggest that the call was never
/// executed: it is IO, or the error of a full disk that was noticed late.
#[must_use]
pub const fn broken_promise(failure: Status) -> Status {
    match failure {
        Status::NoSpc | Status::DQuot | Status::Stale => failure,
        _ => Status::Io,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_promise_never_asks_for_another_try() {
        assert_eq!(broken_promise(Status::Delay), Status::Io);
        assert_eq!(broken_promise(Status::Io), Status::Io);
        assert_eq!(broken_promise(Status::NoSpc), Status::NoSpc);
    }
}
