//! Assertions that are trusted because of where they come from (RFC 2704, section 5.4).

use crate::assertion::Assertion;
use crate::parse_error::ParseError;
use crate::prepared::PreparedAssertion;

/// An assertion of the administrator, which needs no signature. Its Authorizer is `POLICY`, or any
/// other principal for which the administrator wants to speak.
#[derive(Debug, Clone)]
pub struct PolicyAssertion {
    prepared: PreparedAssertion,
}

impl PolicyAssertion {
    /// Takes an assertion as trusted. The caller knows that nobody but the administrator can have
    /// written it. A signature in it is not looked at.
    #[must_use]
    pub fn trust(assertion: Assertion) -> Self {
        Self { prepared: PreparedAssertion::new(assertion) }
    }

    /// Reads a text of trusted assertions with empty lines between them.
    ///
    /// # Errors
    /// The first fault, with its line in the text.
    pub fn parse_all(text: impl AsRef<[u8]>) -> Result<Vec<Self>, ParseError> {
        Ok(Assertion::parse_all(text)?.into_iter().map(Self::trust).collect())
    }

    /// The assertion, to be evaluated.
    #[must_use]
    pub const fn prepared(&self) -> &PreparedAssertion {
        &self.prepared
    }
}
