//! An assertion that is trusted or verified, and prepared for evaluation.

use crate::assertion::Assertion;
use crate::fixed::FixedValues;
use crate::pattern::{Pattern, ready_patterns};
use crate::principal::Principal;
use crate::tree::{Clause, Constant, Licensees, LicenseesField, StringExpr};

/// An assertion that may be evaluated. Only a [`crate::SignedAssertion`] or a
/// [`crate::PolicyAssertion`] provides one.
#[derive(Debug, Clone)]
pub struct PreparedAssertion {
    assertion: Assertion,
    authorizer: Named,
    licensed: Licensed,
    /// The regular expressions in the conditions, with their compiled forms.
    patterns: Vec<(String, Pattern)>,
}

/// A principal of an assertion.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Named {
    /// A principal that is the same in each query.
    Always(Principal),
    /// A principal whose name depends on the query.
    ByQuery(StringExpr),
}

/// The Licensees field.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Licensed {
    /// There is no Licensees field: every principal is licensed.
    Everybody,
    /// The field is empty: nobody is licensed.
    Nobody,
    /// The principals of this expression are licensed.
    These(LicenseesOf),
}

/// An expression over principals.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LicenseesOf {
    One(Named),
    All(Vec<LicenseesOf>),
    Any(Vec<LicenseesOf>),
    AtLeast(u32, Vec<Named>),
}

impl PreparedAssertion {
    pub(crate) fn new(assertion: Assertion) -> Self {
        let body = assertion.body();
        let mut fixed = FixedValues::new(&body.constants);
        let authorizer = named(&body.authorizer, &mut fixed);
        let licensed = match &body.licensees {
            LicenseesField::Missing => Licensed::Everybody,
            LicenseesField::Empty => Licensed::Nobody,
            LicenseesField::Given(licensees) => {
                Licensed::These(licensees_of(licensees, &mut fixed))
            }
        };
        let clauses = body.conditions.as_deref().unwrap_or_default();
        let patterns = ready_patterns(clauses, &mut fixed);
        Self { assertion, authorizer, licensed, patterns }
    }

    /// The assertion as it was read.
    #[must_use]
    pub const fn assertion(&self) -> &Assertion {
        &self.assertion
    }

    /// The authorizing principal, if it is the same in each query.
    #[must_use]
    pub const fn authorizer(&self) -> Option<&Principal> {
        self.authorizer.principal()
    }

    /// The principals that the Licensees field names; `None` if it may license others: the field is
    /// missing, or names an attribute of the action.
    #[must_use]
    pub fn licensees(&self) -> Option<Vec<&Principal>> {
        match &self.licensed {
            Licensed::Everybody => None,
            Licensed::Nobody => Some(Vec::new()),
            Licensed::These(licensees) => {
                let mut names = Vec::new();
                licensees.names(&mut names);
                names.into_iter().map(Named::principal).collect()
            }
        }
    }

    pub(crate) const fn authorizer_name(&self) -> &Named {
        &self.authorizer
    }

    pub(crate) const fn licensed(&self) -> &Licensed {
        &self.licensed
    }

    /// The names and values of Local-Constants.
    pub(crate) fn constants(&self) -> &[Constant] {
        &self.assertion.body().constants
    }

    /// The clauses of the Conditions field, if there is one.
    pub(crate) fn conditions(&self) -> Option<&[Clause]> {
        self.assertion.body().conditions.as_deref()
    }

    /// The compiled regular expression of this text, if it was compiled in advance.
    pub(crate) fn pattern(&self, text: &str) -> Option<&Pattern> {
        self.patterns.iter().find(|(known, _)| known == text).map(|(_, pattern)| pattern)
    }
}

impl Named {
    /// The principal, if it is the same in each query.
    const fn principal(&self) -> Option<&Principal> {
        match self {
            Self::Always(principal) => Some(principal),
            Self::ByQuery(_) => None,
        }
    }
}

impl LicenseesOf {
    /// Appends all principals, in the order of the text.
    pub(crate) fn names<'a>(&'a self, names: &mut Vec<&'a Named>) {
        match self {
            Self::One(name) => names.push(name),
            Self::All(parts) | Self::Any(parts) => parts.iter().for_each(|part| part.names(names)),
            Self::AtLeast(_, principals) => names.extend(principals),
        }
    }
}

fn named(expression: &StringExpr, fixed: &mut FixedValues<'_>) -> Named {
    match fixed.value(expression) {
        Some(name) => Named::Always(Principal::named(&name)),
        None => Named::ByQuery(expression.clone()),
    }
}

fn licensees_of(licensees: &Licensees, fixed: &mut FixedValues<'_>) -> LicenseesOf {
    let mut all = |parts: &[Licensees]| {
        parts.iter().map(|part| licensees_of(part, fixed)).collect::<Vec<_>>()
    };
    match licensees {
        Licensees::All(parts) => LicenseesOf::All(all(parts)),
        Licensees::Any(parts) => LicenseesOf::Any(all(parts)),
        Licensees::Principal(principal) => LicenseesOf::One(named(principal, fixed)),
        Licensees::AtLeast(least, principals) => {
            let principals = principals.iter().map(|principal| named(principal, fixed));
            LicenseesOf::AtLeast(*least, principals.collect())
        }
    }
}
