//! Errors of tests (RFC 2704, section 5.3.4).

use super::meter::Exhausted;

/// An error in a test, which makes the test false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// A division by zero, or zero to a negative power.
    #[error("a division by zero")]
    DivisionByZero,
    /// A number that does not fit into 32 bits.
    #[error("a number out of range")]
    OutOfRange,
    /// An invalid regular expression, or one that exceeds a limit.
    #[error("an invalid regular expression")]
    Pattern,
    /// A string that is longer than it may be.
    #[error("a string that is too long")]
    TooLong,
}

/// The reason why an evaluation stopped before its value was known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The evaluation limit ends the whole query.
    Exhausted,
    /// An error ends the test.
    Runtime(RuntimeError),
}

impl From<Exhausted> for Fault {
    fn from(_: Exhausted) -> Self {
        Self::Exhausted
    }
}

impl From<RuntimeError> for Fault {
    fn from(error: RuntimeError) -> Self {
        Self::Runtime(error)
    }
}
