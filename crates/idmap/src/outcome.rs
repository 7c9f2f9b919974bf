/// The result of mapping a client's id, with its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdOutcome {
    /// The id is squashed to the anonymous one.
    Squashed,
    /// The id becomes this server id.
    Mapped {
        /// The server id.
        disk: u32,
        /// The number of the rule.
        rule: u32,
    },
    /// There are no ranges: the id stays as it is.
    Unmapped,
    /// The id is in no range and stays as it is.
    Passed,
    /// The id is in no range and becomes the anonymous one.
    Anonymous,
    /// The id is in no range, and calls with it are refused.
    Denied,
}

/// The error if the domain has no id for an owner that should be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the domain has no id for that owner")]
pub struct Unmapped;
