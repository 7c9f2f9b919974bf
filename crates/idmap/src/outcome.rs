/// The result of mapping a client's id, and its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdOutcome {
    /// It is the anonymous one, by squashing.
    Squashed,
    /// It is this server id.
    Mapped {
        /// The server id.
        disk: u32,
        /// By the rule of this number.
        rule: u32,
    },
    /// There are no ranges: it is what it is.
    Unmapped,
    /// It is in no range and stays what it is.
    Passed,
    /// It is in no range and is the anonymous one.
    Anonymous,
    /// It is in no range, and calls under it are refused.
    Denied,
}

/// The domain has no id for an owner that was to be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the domain has no id for that owner")]
pub struct Unmapped;
