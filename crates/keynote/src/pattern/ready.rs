//! The regular expressions in conditions, compiled in advance.

use crate::fixed::FixedValues;
use crate::limits::{PATTERNS_READY_MAX, PROGRAMS_READY_MAX};
use crate::tree::{Clause, Consequence, Predicate};

use super::Pattern;

/// Compiles the expressions of clauses that are the same in each query, up to the limits; others
/// are compiled when used.
pub(crate) fn ready_patterns(
    clauses: &[Clause],
    fixed: &mut FixedValues<'_>,
) -> Vec<(String, Pattern)> {
    let mut patterns = ReadyPatterns { fixed, found: Vec::new(), programs: 0 };
    patterns.of_clauses(clauses);
    patterns.found
}

/// The compiled expressions of conditions.
struct ReadyPatterns<'a, 'b> {
    fixed: &'a mut FixedValues<'b>,
    found: Vec<(String, Pattern)>,
    /// The number of patterns with a program.
    programs: usize,
}

impl ReadyPatterns<'_, '_> {
    fn of_clauses(&mut self, clauses: &[Clause]) {
        for clause in clauses {
            self.of_test(&clause.test);
            if let Consequence::Program(clauses) = &clause.outcome {
                self.of_clauses(clauses);
            }
        }
    }

    fn of_test(&mut self, test: &Predicate) {
        match test {
            Predicate::Not(test) => self.of_test(test),
            Predicate::All(tests) | Predicate::Any(tests) => {
                tests.iter().for_each(|test| self.of_test(test));
            }
            Predicate::Matches(_, pattern) => {
                let text = self.fixed.value(pattern);
                text.into_iter().for_each(|text| self.add(text));
            }
            Predicate::Constant(_)
            | Predicate::Strings(..)
            | Predicate::Integers(..)
            | Predicate::Floats(..) => {}
        }
    }

    fn add(&mut self, text: String) {
        let is_known = self.found.iter().any(|(known, _)| *known == text);
        if is_known || self.found.len() == PATTERNS_READY_MAX {
            return;
        }
        let pattern = Pattern::new(&text);
        if matches!(pattern, Pattern::Expression { .. }) {
            if self.programs == PROGRAMS_READY_MAX {
                return;
            }
            self.programs += 1;
        }
        self.found.push((text, pattern));
    }
}
