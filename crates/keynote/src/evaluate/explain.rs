//! Explanations of a result: what each assertion gives, and which clause decided.

use crate::prepared::PreparedAssertion;
use crate::rights::Rights;
use crate::tree::{Clause, Consequence, Predicate};

use super::fault::{Fault, RuntimeError};
use super::graph::{Graph, Link};
use super::interpreter::Interpreter;
use super::meter::Exhausted;
use super::scale::RightsScale;

/// Most characters of a test that a reason shows.
const TEST_CHARS_MAX: usize = 200;

/// The result for one assertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkReport {
    /// The rights that the conditions give for this action, to any requester.
    pub conditions: Rights,
    /// The rights of the licensees: all for requesters, for others those that they were given.
    pub licensees: Rights,
    /// The clauses, including those within braces, in the order of the text. Empty if there is no
    /// Conditions field, so that the conditions give all rights.
    pub clauses: Vec<ClauseReport>,
}

impl LinkReport {
    /// The rights that the assertion gives.
    #[must_use]
    pub const fn rights(&self) -> Rights {
        self.conditions.intersection(self.licensees)
    }
}

/// The result for one clause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClauseReport {
    /// The line of the assertion's text at which the clause begins, from 1.
    pub line: u32,
    /// The rights that it gives, or the reason why it gives none.
    pub verdict: Result<Rights, Reason>,
}

/// The reason why a clause gives no rights.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// This test is false.
    #[error("`{0}` is false")]
    False(String),
    /// This test caused an error.
    #[error("`{test}` is false because of {error}")]
    Fault {
        /// The text of the test.
        test: String,
        /// The error in it.
        error: RuntimeError,
    },
    /// The test is true, but the value names no right.
    #[error("the value names no right")]
    NoRight,
}

/// Reports on all assertions of an evaluated graph.
pub(super) fn reports<'t>(
    interpreter: &mut Interpreter<'t, RightsScale>,
    graph: &Graph<'t, Rights>,
) -> Result<Vec<LinkReport>, Exhausted> {
    let report = |link: &Link<'t, Rights>| {
        let assertion = link.assertion;
        let conditions = interpreter.conditions(assertion)?;
        let mut clauses = Vec::new();
        let all = assertion.conditions().unwrap_or_default();
        let mut explainer = Explainer { interpreter, assertion, reports: &mut clauses };
        explainer.clauses(all)?;
        let licensees = graph.licensees(&RightsScale, link);
        Ok(LinkReport { conditions, licensees, clauses })
    };
    graph.links().iter().map(report).collect()
}

struct Explainer<'a, 't> {
    interpreter: &'a mut Interpreter<'t, RightsScale>,
    assertion: &'t PreparedAssertion,
    reports: &'a mut Vec<ClauseReport>,
}

impl<'t> Explainer<'_, 't> {
    fn clauses(&mut self, clauses: &'t [Clause]) -> Result<(), Exhausted> {
        clauses.iter().try_for_each(|clause| self.clause(clause))
    }

    fn clause(&mut self, clause: &'t Clause) -> Result<(), Exhausted> {
        let outer = self.interpreter.groups.clone();
        let failed = self.failure(&clause.test)?;
        let verdict = match failed {
            Some(reason) => Err(reason),
            None => {
                let rights = self.interpreter.consequence(self.assertion, &clause.outcome)?;
                if rights.is_none() { Err(Reason::NoRight) } else { Ok(rights) }
            }
        };
        let is_true = !matches!(verdict, Err(Reason::False(_) | Reason::Fault { .. }));
        self.reports.push(ClauseReport { line: clause.line.0, verdict });
        if let Consequence::Program(inner) = &clause.outcome
            && is_true
        {
            self.clauses(inner)?;
        }
        self.interpreter.groups = outer;
        Ok(())
    }

    /// The part of a test that makes it false; `None` if the test is true.
    fn failure(&mut self, test: &'t Predicate) -> Result<Option<Reason>, Exhausted> {
        if let Predicate::All(tests) = test {
            for test in tests {
                if let Some(reason) = self.failure(test)? {
                    return Ok(Some(reason));
                }
            }
            return Ok(None);
        }
        match self.interpreter.test(self.assertion, test) {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(Reason::False(shortened(test)))),
            Err(Fault::Runtime(error)) => Ok(Some(Reason::Fault { test: shortened(test), error })),
            Err(Fault::Exhausted) => Err(Exhausted),
        }
    }
}

fn shortened(test: &Predicate) -> String {
    let text = test.to_string();
    let cut: String = text.chars().take(TEST_CHARS_MAX).collect();
    if cut.len() < text.len() { cut + "..." } else { cut }
}
