//! Assertions that are trusted because of their origin (RFC 2704, section 5.4).

use crate::assertion::Assertion;
use crate::parse_error::ParseError;
use crate::prepared::PreparedAssertion;

/// An assertion of the administrator, which needs no signature. Its Authorizer is `POLICY`, or any
/// other principal on whose behalf the administrator acts.
#[derive(Debug, Clone)]
pub struct PolicyAssertion {
    prepared: PreparedAssertion,
}

impl PolicyAssertion {
    /// Trusts an assertion. The caller must know that only the administrator can have written it. A
    /// signature in it is ignored.
    #[must_use]
    pub fn trust(assertion: Assertion) -> Self {
        Self { prepared: PreparedAssertion::new(assertion) }
    }

    /// Parses trusted assertions that are separated by empty lines.
    ///
    /// # Errors
    /// The first error, with its line in the text.
    pub fn parse_all(text: impl AsRef<[u8]>) -> Result<Vec<Self>, ParseError> {
        Ok(Assertion::parse_all(text)?.into_iter().map(Self::trust).collect())
    }

    /// The assertion for evaluation.
    #[must_use]
    pub const fn prepared(&self) -> &PreparedAssertion {
        &self.prepared
    }
}
