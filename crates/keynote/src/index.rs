//! The attribute values that an assertion requires, so that callers can look up assertions by them
//! instead of evaluating all.

use crate::evaluate::NOW;
use crate::fixed::constant;
use crate::pattern::Pattern;
use crate::prepared::PreparedAssertion;
use crate::tree::{Clause, Comparison, Consequence, Order, Predicate, StringExpr};

/// A value that an assertion requires of an attribute. An undefined attribute has the empty string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Need<'a> {
    /// The name of the attribute.
    pub attribute: &'a str,
    /// Its value, or a part of it.
    pub value: NeededValue<'a>,
}

/// A required value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NeededValue<'a> {
    /// The value must be this string.
    Whole(&'a str),
    /// The value must contain this string.
    Part(&'a str),
}

impl PreparedAssertion {
    /// The needs of an assertion: unless at least one of them is met, it gives no rights to
    /// anybody. Only the listed attributes are considered. `None` if it may give rights whatever
    /// their values are; an empty list if it never gives any.
    ///
    /// A canonical grant requires that `object` is its id or that `within` contains its id, so the
    /// list must contain both attributes to find this.
    #[must_use]
    pub fn needs<'a>(&'a self, attributes: &[&str]) -> Option<Vec<Need<'a>>> {
        let search = Search { assertion: self, attributes };
        search.any(self.conditions()?, |clause| search.clause(clause))
    }

    /// The last moment at which the assertion may give rights: no greater value of `now` meets the
    /// conditions. `None` if there may be no such moment; the empty string if the conditions can
    /// never be met.
    #[must_use]
    pub fn last_moment(&self) -> Option<&str> {
        last(self.conditions()?, |clause| self.last_of_clause(clause))
    }

    fn last_of_clause<'a>(&'a self, clause: &'a Clause) -> Option<&'a str> {
        let inner = match &clause.outcome {
            Consequence::Program(clauses) => last(clauses, |clause| self.last_of_clause(clause)),
            Consequence::Maximum | Consequence::Value(_) => None,
        };
        first([self.last_of_test(&clause.test), inner])
    }

    fn last_of_test<'a>(&'a self, test: &'a Predicate) -> Option<&'a str> {
        let is_it = |side: &StringExpr| matches!(side, StringExpr::Attribute(name) if name == NOW);
        let is_now = |side: &StringExpr| is_it(side) && !self.is_constant(NOW);
        match test {
            Predicate::Constant(false) => Some(""),
            Predicate::All(tests) => first(tests.iter().map(|test| self.last_of_test(test))),
            Predicate::Any(tests) => last(tests, |test| self.last_of_test(test)),
            Predicate::Strings(left, by, right) if is_now(left) && ends_time(*by, false) => {
                self.literal(right)
            }
            Predicate::Strings(left, by, right) if is_now(right) && ends_time(*by, true) => {
                self.literal(left)
            }
            _ => None,
        }
    }

    fn is_constant(&self, name: &str) -> bool {
        constant(name, self.constants()).is_some()
    }

    /// The value of a literal or of a constant.
    fn literal<'a>(&'a self, expression: &'a StringExpr) -> Option<&'a str> {
        match expression {
            StringExpr::Literal(text) => Some(text),
            StringExpr::Attribute(name) => constant(name, self.constants()),
            StringExpr::Dereference(_) | StringExpr::Concatenation(_) => None,
        }
    }
}

/// Returns whether a comparison with the time on one side is false for all times after the other
/// side.
const fn ends_time(by: Comparison, is_right: bool) -> bool {
    match by {
        Comparison::Equal => true,
        Comparison::Unequal => false,
        Comparison::Order(Order::Less | Order::AtMost) => !is_right,
        Comparison::Order(Order::Greater | Order::AtLeast) => is_right,
    }
}

/// The earliest of the known moments.
fn first<'a>(moments: impl IntoIterator<Item = Option<&'a str>>) -> Option<&'a str> {
    moments.into_iter().flatten().min()
}

/// The latest of all moments, if all are known.
fn last<'a, T>(parts: &'a [T], moment: impl Fn(&'a T) -> Option<&'a str>) -> Option<&'a str> {
    parts.iter().try_fold("", |latest, part| Some(latest.max(moment(part)?)))
}

/// A search for the needs of an assertion.
struct Search<'a, 'b> {
    assertion: &'a PreparedAssertion,
    attributes: &'b [&'b str],
}

impl<'a> Search<'a, '_> {
    /// The needs of alternatives, of which one must hold.
    fn any<T>(
        &self,
        parts: &'a [T],
        needs: impl Fn(&'a T) -> Option<Vec<Need<'a>>>,
    ) -> Option<Vec<Need<'a>>> {
        let all: Option<Vec<_>> = parts.iter().map(needs).collect();
        Some(all?.concat())
    }

    fn clause(&self, clause: &'a Clause) -> Option<Vec<Need<'a>>> {
        let test = self.test(&clause.test);
        let inner = match &clause.outcome {
            Consequence::Program(clauses) => self.any(clauses, |clause| self.clause(clause)),
            Consequence::Maximum | Consequence::Value(_) => None,
        };
        fewest([test, inner])
    }

    fn test(&self, test: &'a Predicate) -> Option<Vec<Need<'a>>> {
        match test {
            Predicate::Constant(false) => Some(Vec::new()),
            Predicate::All(tests) => fewest(tests.iter().map(|test| self.test(test))),
            Predicate::Any(tests) => self.any(tests, |test| self.test(test)),
            Predicate::Strings(left, Comparison::Equal, right) => {
                let is_left = self.attribute(left).is_some();
                let (one, other) = if is_left { (left, right) } else { (right, left) };
                let value = NeededValue::Whole(self.assertion.literal(other)?);
                Some(vec![Need { attribute: self.attribute(one)?, value }])
            }
            Predicate::Matches(text, pattern) => {
                let attribute = self.attribute(text)?;
                let pattern = self.assertion.pattern(self.assertion.literal(pattern)?)?;
                match pattern {
                    Pattern::Text(part) if !part.is_empty() => {
                        Some(vec![Need { attribute, value: NeededValue::Part(part) }])
                    }
                    Pattern::Invalid => Some(Vec::new()),
                    Pattern::Text(_) | Pattern::Expression { .. } => None,
                }
            }
            _ => None,
        }
    }

    /// The name of the action attribute that an expression reads, if it is listed.
    fn attribute(&self, expression: &'a StringExpr) -> Option<&'a str> {
        match expression {
            StringExpr::Attribute(name) if self.attributes.contains(&name.as_str()) => {
                let is_constant = self.assertion.is_constant(name);
                (!is_constant && !name.starts_with('_')).then_some(name)
            }
            _ => None,
        }
    }
}

/// The shortest of the lists, all of which must be met.
fn fewest<'a>(lists: impl IntoIterator<Item = Option<Vec<Need<'a>>>>) -> Option<Vec<Need<'a>>> {
    lists.into_iter().flatten().min_by_key(Vec::len)
}
