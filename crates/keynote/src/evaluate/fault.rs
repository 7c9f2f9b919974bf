//! Errors of tests (RFC 2704, section 5.3.4).

use super::meter::Exhausted;

/// An error in a test, which makes the test false.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// A division by zero, or zero to a negative power.
    #[error("a division by zero")]
    DivisionByZero,
    /// A number that has no place in 32 bits.
    #[error("a number out of range")]
    OutOfRange,
    /// A text that is no regular expression, or one that exceeds a limit.
    #[error("an invalid regular expression")]
    Pattern,
    /// A string that is longer than it may be.
    #[error("a string that is too long")]
    TooLong,
}

/// The end of an evaluation before its value is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The end of the whole evaluation.
    Exhausted,
    /// The end of the test.
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
