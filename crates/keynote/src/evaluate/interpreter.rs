//! Evaluation of conditions: clauses, tests and strings (RFC 2704, section 5.3.4).

use std::borrow::Cow;
use std::cmp::Ordering;
use std::rc::Rc;

use crate::attributes::Attributes;
use crate::fixed::constant;
use crate::limits::{REGEX_READING_STEPS, REGEX_WEIGHT_STEPS, STRING_BYTES_MAX};
use crate::pattern::Pattern;
use crate::prepared::PreparedAssertion;
use crate::principal::Principal;
use crate::tree::{Arithmetic, Clause, Comparison, Consequence, Order, Predicate, StringExpr};

use super::arithmetic::Number;
use super::fault::{Fault, RuntimeError};
use super::meter::{Exhausted, Meter};
use super::scale::Scale;
use super::validity::{NOW, NowUse};

/// Bytes of strings that count as one step.
const STEP_BYTES: usize = 16;

/// Evaluates the conditions of assertions for one query.
pub(super) struct Interpreter<'t, S> {
    pub(super) scale: &'t S,
    pub(super) attributes: &'t dyn Attributes,
    pub(super) requesters: &'t [Principal],
    pub(super) meter: Meter,
    pub(super) now: NowUse,
    /// The groups of the last match within the clause: the attributes `_0`, `_1` and so on.
    pub(super) groups: Option<Rc<[String]>>,
}

impl<'t, S: Scale> Interpreter<'t, S> {
    pub(super) fn new(
        scale: &'t S,
        attributes: &'t dyn Attributes,
        requesters: &'t [Principal],
    ) -> Self {
        let (meter, now) = (Meter::new(), NowUse::default());
        Self { scale, attributes, requesters, meter, now, groups: None }
    }

    /// The value of an assertion's conditions.
    pub(super) fn conditions(
        &mut self,
        assertion: &'t PreparedAssertion,
    ) -> Result<S::Value, Exhausted> {
        self.groups = None;
        match assertion.conditions() {
            Some(clauses) => self.program(assertion, clauses),
            None => Ok(self.scale.all()),
        }
    }

    fn program(
        &mut self,
        assertion: &'t PreparedAssertion,
        clauses: &'t [Clause],
    ) -> Result<S::Value, Exhausted> {
        let mut value = self.scale.none();
        for clause in clauses {
            if value == self.scale.all() {
                break;
            }
            let more = self.clause(assertion, clause)?;
            value = self.scale.either(value, more);
        }
        Ok(value)
    }

    fn clause(
        &mut self,
        assertion: &'t PreparedAssertion,
        clause: &'t Clause,
    ) -> Result<S::Value, Exhausted> {
        let outer = self.groups.clone();
        let value = match self.test(assertion, &clause.test) {
            Ok(true) => self.consequence(assertion, &clause.outcome),
            Ok(false) | Err(Fault::Runtime(_)) => Ok(self.scale.none()),
            Err(Fault::Exhausted) => Err(Exhausted),
        };
        self.groups = outer;
        value
    }

    /// The value of a clause whose test is true.
    pub(super) fn consequence(
        &mut self,
        assertion: &'t PreparedAssertion,
        consequence: &'t Consequence,
    ) -> Result<S::Value, Exhausted> {
        match consequence {
            Consequence::Maximum => Ok(self.scale.all()),
            Consequence::Program(clauses) => self.program(assertion, clauses),
            Consequence::Value(expression) => match self.string(assertion, expression) {
                Ok(name) => Ok(self.scale.named(&name).unwrap_or(self.scale.none())),
                Err(Fault::Runtime(_)) => Ok(self.scale.none()),
                Err(Fault::Exhausted) => Err(Exhausted),
            },
        }
    }

    /// Evaluates a test. The right side of `&&` and `||` is skipped if the left side decides.
    pub(super) fn test(
        &mut self,
        assertion: &'t PreparedAssertion,
        test: &'t Predicate,
    ) -> Result<bool, Fault> {
        self.meter.charge(1)?;
        match test {
            Predicate::Constant(value) => Ok(*value),
            Predicate::Not(test) => Ok(!self.test(assertion, test)?),
            Predicate::All(tests) => self.first(assertion, tests, false),
            Predicate::Any(tests) => self.first(assertion, tests, true),
            Predicate::Strings(left, by, right) => self.strings(assertion, (left, right), *by),
            Predicate::Integers(left, by, right) => {
                let (left, right) = (self.number(assertion, left)?, self.number(assertion, right)?);
                Ok(holds(*by, left.cmp(&right)))
            }
            Predicate::Floats(left, by, right) => {
                let (left, right) = (self.number(assertion, left)?, self.number(assertion, right)?);
                let order = f32::partial_cmp(&left, &right);
                Ok(order.is_some_and(|order| holds(Comparison::Order(*by), order)))
            }
            Predicate::Matches(text, pattern) => self.matches(assertion, text, pattern),
        }
    }

    /// Returns `wanted` if one of the tests has this value.
    fn first(
        &mut self,
        assertion: &'t PreparedAssertion,
        tests: &'t [Predicate],
        wanted: bool,
    ) -> Result<bool, Fault> {
        for test in tests {
            if self.test(assertion, test)? == wanted {
                return Ok(wanted);
            }
        }
        Ok(!wanted)
    }

    fn strings(
        &mut self,
        assertion: &'t PreparedAssertion,
        (left, right): (&'t StringExpr, &'t StringExpr),
        by: Comparison,
    ) -> Result<bool, Fault> {
        let order = if is_now(assertion, left) {
            let other = self.string(assertion, right)?;
            let now = self.attributes.get(NOW).unwrap_or_default();
            self.now.note(now, by, &other);
            now.cmp(&*other)
        } else if is_now(assertion, right) {
            let other = self.string(assertion, left)?;
            let now = self.attributes.get(NOW).unwrap_or_default();
            self.now.note(now, reversed(by), &other);
            (*other).cmp(now)
        } else {
            let (left, right) = (self.string(assertion, left)?, self.string(assertion, right)?);
            self.meter.charge(left.len().min(right.len()) / STEP_BYTES)?;
            left.cmp(&right)
        };
        Ok(holds(by, order))
    }

    fn matches(
        &mut self,
        assertion: &'t PreparedAssertion,
        text: &'t StringExpr,
        pattern: &'t StringExpr,
    ) -> Result<bool, Fault> {
        let (text, pattern) = (self.string(assertion, text)?, self.string(assertion, pattern)?);
        let read;
        let pattern = match assertion.pattern(&pattern) {
            Some(pattern) => pattern,
            None => {
                self.meter.charge(REGEX_READING_STEPS + pattern.len())?;
                read = Pattern::new(&pattern);
                self.meter.charge(read.weight() * REGEX_WEIGHT_STEPS)?;
                &read
            }
        };
        self.meter.charge(pattern.steps(&text))?;
        let found = pattern.find(&text).map_err(|_| RuntimeError::Pattern)?;
        let is_match = found.is_some();
        self.groups = found.map(Rc::from);
        Ok(is_match)
    }

    /// The value of a string expression.
    pub(super) fn string(
        &mut self,
        assertion: &'t PreparedAssertion,
        expression: &'t StringExpr,
    ) -> Result<Cow<'t, str>, Fault> {
        self.meter.charge(1)?;
        match expression {
            StringExpr::Literal(text) => Ok(text.into()),
            StringExpr::Attribute(name) => self.attribute(assertion, name),
            StringExpr::Dereference(name) => {
                let name = self.string(assertion, name)?;
                self.attribute(assertion, &name)
            }
            StringExpr::Concatenation(parts) => {
                let mut whole = String::new();
                for part in parts {
                    let part = self.string(assertion, part)?;
                    self.meter.charge(part.len() / STEP_BYTES)?;
                    if whole.len() + part.len() > STRING_BYTES_MAX {
                        return Err(RuntimeError::TooLong.into());
                    }
                    whole.push_str(&part);
                }
                Ok(whole.into())
            }
        }
    }

    /// The value of an attribute; the empty string if it is undefined.
    fn attribute(
        &mut self,
        assertion: &'t PreparedAssertion,
        name: &str,
    ) -> Result<Cow<'t, str>, Fault> {
        if let Some(reserved) = name.strip_prefix('_') {
            let value = self.reserved(name, reserved);
            self.meter.charge(value.len() / STEP_BYTES)?;
            return Ok(value);
        }
        let constants = assertion.constants();
        self.meter.charge((name.len() + constants.len()) / STEP_BYTES)?;
        if let Some(value) = constant(name, constants) {
            return Ok(value.into());
        }
        if name == NOW {
            self.now.note_opaque();
        }
        Ok(self.attributes.get(name).unwrap_or_default().into())
    }

    /// The value of an attribute whose name begins with an underscore (section 3).
    fn reserved(&self, name: &str, digits: &str) -> Cow<'t, str> {
        if let Some(value) = self.scale.attribute(name) {
            return value;
        }
        if name == "_ACTION_AUTHORIZERS" {
            let names: Vec<String> = self.requesters.iter().map(ToString::to_string).collect();
            return names.join(",").into();
        }
        let Some(groups) = &self.groups else { return "".into() };
        match digits.parse::<usize>() {
            Ok(0) => groups.len().to_string().into(),
            Ok(group) => groups.get(group - 1).cloned().unwrap_or_default().into(),
            Err(_) => "".into(),
        }
    }

    fn number<T: Number>(
        &mut self,
        assertion: &'t PreparedAssertion,
        expression: &'t Arithmetic<T>,
    ) -> Result<T, Fault> {
        self.meter.charge(1)?;
        match expression {
            Arithmetic::Literal(number) => Ok(*number),
            Arithmetic::Converted(text) => {
                let text = self.string(assertion, text)?;
                self.meter.charge(text.len() / STEP_BYTES)?;
                Ok(T::spelled(&text)?)
            }
            Arithmetic::Negated(number) => Ok(self.number(assertion, number)?.negated()?),
            Arithmetic::Chain(first, steps) => {
                let mut result = self.number(assertion, first)?;
                for (operator, number) in steps {
                    result = result.combined(*operator, self.number(assertion, number)?)?;
                }
                Ok(result)
            }
        }
    }
}

/// Returns whether an expression is the attribute `now` alone.
fn is_now(assertion: &PreparedAssertion, expression: &StringExpr) -> bool {
    let is_it = matches!(expression, StringExpr::Attribute(name) if name == NOW);
    is_it && constant(NOW, assertion.constants()).is_none()
}

fn holds(by: Comparison, order: Ordering) -> bool {
    match by {
        Comparison::Equal => order.is_eq(),
        Comparison::Unequal => order.is_ne(),
        Comparison::Order(Order::Less) => order.is_lt(),
        Comparison::Order(Order::Greater) => order.is_gt(),
        Comparison::Order(Order::AtMost) => order.is_le(),
        Comparison::Order(Order::AtLeast) => order.is_ge(),
    }
}

/// The comparison with its sides exchanged.
const fn reversed(by: Comparison) -> Comparison {
    match by {
        Comparison::Order(order) => Comparison::Order(match order {
            Order::Less => Order::Greater,
            Order::Greater => Order::Less,
            Order::AtMost => Order::AtLeast,
            Order::AtLeast => Order::AtMost,
        }),
        symmetric => symmetric,
    }
}
