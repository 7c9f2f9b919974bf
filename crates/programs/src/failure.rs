use comity_proto::grants::Status;

/// The status of a call that failed, with a message for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFailure {
    /// The status.
    pub status: Status,
    /// The message.
    pub text: String,
}

impl CallFailure {
    /// Makes a failure.
    pub fn new(status: Status, text: impl ToString) -> Self {
        Self { status, text: text.to_string() }
    }

    /// The call makes no sense, or does not fit the configuration.
    pub fn invalid(text: impl ToString) -> Self {
        Self::new(Status::Invalid, text)
    }

    /// The call could succeed later.
    pub fn at_present(text: impl ToString) -> Self {
        Self::new(Status::Full, text)
    }

    /// The server failed.
    pub fn fault(text: impl ToString) -> Self {
        Self::new(Status::Fault, text)
    }
}
