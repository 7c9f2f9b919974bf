use comity_keynote::{ParseError, PolicyAssertion, Principal};
use comity_keys::PublicKey;

use crate::limits::POLICY_ASSERTIONS_MAX;

/// The policy of an export: unsigned assertions of the administrator, whose Authorizer is `POLICY`
/// (RFC 2704, section 5.4).
#[derive(Debug, Clone)]
pub struct Policy {
    text: String,
    assertions: Vec<PolicyAssertion>,
}

/// The first fault of a policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct PolicyError {
    /// Line of the fault, from 1.
    pub line: u32,
    /// Column of the fault in characters, from 1.
    pub column: u32,
    /// The fault, and what was expected.
    pub why: String,
}

impl From<ParseError> for PolicyError {
    fn from(error: ParseError) -> Self {
        let ParseError { line, column, expected, found } = error;
        Self { line, column, why: format!("expected {expected}, found {found}") }
    }
}

impl Policy {
    /// Reads assertions that are separated by empty lines. Signatures are ignored.
    ///
    /// # Errors
    /// [`PolicyError`]: the text is not a list of assertions, there are none or too many, or one
    /// has another Authorizer than `POLICY`.
    pub fn parse(text: &[u8]) -> Result<Self, PolicyError> {
        let assertions = PolicyAssertion::parse_all(text)?;
        let text = String::from_utf8_lossy(text).into_owned();
        let fault = |line, why| PolicyError { line, column: 1, why };
        if assertions.is_empty() {
            return Err(fault(1, "expected an assertion with Authorizer: \"POLICY\"".into()));
        }
        if assertions.len() > POLICY_ASSERTIONS_MAX {
            let why = format!("expected at most {POLICY_ASSERTIONS_MAX} assertions");
            return Err(fault(1, why));
        }
        let policy = Principal::policy();
        let is_policy = |one: &&PolicyAssertion| one.prepared().authorizer() == Some(&policy);
        if let Some(other) = assertions.iter().find(|one| !is_policy(one)) {
            let why = "expected Authorizer: \"POLICY\": an assertion of a key has to be signed, \
                       and submitted by the key that it is for";
            return Err(fault(line_of(&text, other), why.into()));
        }
        Ok(Self { text, assertions })
    }

    /// The assertions, in the order of the text.
    pub(crate) fn assertions(&self) -> &[PolicyAssertion] {
        &self.assertions
    }

    /// Returns whether an assertion names a key, or everybody.
    #[must_use]
    pub fn names(&self, key: &PublicKey) -> bool {
        let names = |one: &PolicyAssertion| {
            let licensees = one.prepared().licensees();
            licensees.is_none_or(|them| them.iter().any(|it| it.key() == Some(key)))
        };
        self.assertions.iter().any(names)
    }
}

/// Two policies are equal if their texts are.
impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

/// The line at which an assertion begins.
fn line_of(text: &str, assertion: &PolicyAssertion) -> u32 {
    let at = text.find(assertion.prepared().assertion().text()).unwrap_or_default();
    text.get(..at).unwrap_or_default().matches('\n').count() as u32 + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_a_policy_names_its_place() {
        let good = "Authorizer: \"POLICY\"\nConditions: true;\n";
        assert!(Policy::parse(good.as_bytes()).is_ok());
        for (text, line, column, part) in [
            ("# nothing\n".to_owned(), 1, 1, "expected an assertion"),
            (format!("{good}\nAuthorizer: \"mallory\"\n"), 4, 1, "has to be signed"),
            (format!("{good}\nAuthorizer: \"POLICY\"\nConditions: a ==;\n"), 5, 17, "found"),
            (format!("{good}\n").repeat(1_025), 1, 1, "at most"),
        ] {
            let error = Policy::parse(text.as_bytes()).unwrap_err();
            assert_eq!((error.line, error.column), (line, column), "{error}");
            assert!(error.why.contains(part), "{error}");
        }
    }
}
