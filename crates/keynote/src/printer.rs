//! The canonical text of a tree; parsing it gives the same tree.

mod numbers;
mod strings;

use std::fmt::{self, Display, Formatter, Write};

use crate::parser::comment;
use crate::tree::{
    Body, Clause, Comparison, Consequence, Licensees, LicenseesField, Order, Predicate,
};

use strings::Literal;

/// The text between the lines of a field.
const CONTINUED: &str = "\n\t";

/// The text between tests that are joined by `&&`.
const AND_CONTINUED: &str = " &&\n\t";

impl Display for Body {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str("KeyNote-Version: 2\n")?;
        if !self.constants.is_empty() {
            let constants = self
                .constants
                .iter()
                .map(|constant| format!("{} = {}", constant.name, Literal(&constant.value)));
            let constants: Vec<String> = constants.collect();
            writeln!(out, "Local-Constants: {}", constants.join(CONTINUED))?;
        }
        writeln!(out, "Authorizer: {}", self.authorizer)?;
        match &self.licensees {
            LicenseesField::Missing => {}
            LicenseesField::Empty => out.write_str("Licensees:\n")?,
            LicenseesField::Given(licensees) => writeln!(out, "Licensees: {licensees}")?,
        }
        if let Some(clauses) = &self.conditions {
            writeln!(out, "Conditions: {}", Separated(clauses, CONTINUED))?;
        }
        match &self.comment {
            Some(text) => writeln!(out, "Comment: {}", printable(text).replace('\n', CONTINUED)),
            None => Ok(()),
        }
    }
}

/// A comment that cannot be read as other fields.
fn printable(text: &str) -> String {
    let allowed = |char: char| if matches!(char, '\0' | '\r') { ' ' } else { char };
    let indented = format!(" {}", text.replace('\n', "\n "));
    comment(&indented.chars().map(allowed).collect::<String>())
}

/// Parts with a separator between them.
struct Separated<'a, T>(&'a [T], &'static str);

impl<T: Display> Display for Separated<'_, T> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        for (part, at) in self.0.iter().zip(0..) {
            if at > 0 {
                out.write_str(self.1)?;
            }
            part.fmt(out)?;
        }
        Ok(())
    }
}

/// A part, in parentheses if they are needed.
struct Enclosed<'a, T>(&'a T, bool);

impl<T: Display> Display for Enclosed<'_, T> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self.1 {
            true => write!(out, "({})", self.0),
            false => self.0.fmt(out),
        }
    }
}

/// Writes parts with a symbol between them, and parentheses around the parts for which `encloses`
/// is true.
fn joined<T: Display>(
    out: &mut Formatter<'_>,
    parts: &[T],
    symbol: &'static str,
    encloses: impl Fn(&T) -> bool,
) -> fmt::Result {
    let parts: Vec<_> = parts.iter().map(|part| Enclosed(part, encloses(part))).collect();
    Separated(&parts, symbol).fmt(out)
}

impl Display for Licensees {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Principal(principal) => principal.fmt(out),
            Self::All(parts) => {
                joined(out, parts, " && ", |part| matches!(part, Self::All(_) | Self::Any(_)))
            }
            Self::Any(parts) => joined(out, parts, " || ", |part| matches!(part, Self::Any(_))),
            Self::AtLeast(least, parts) => write!(out, "{least}-of({})", Separated(parts, ", ")),
        }
    }
}

impl Display for Clause {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match &self.test {
            Predicate::All(tests) => joined(out, tests, AND_CONTINUED, Predicate::is_chain)?,
            test => test.fmt(out)?,
        }
        match &self.outcome {
            Consequence::Maximum => {}
            Consequence::Value(value) => write!(out, " -> {value}")?,
            Consequence::Program(clauses) => write!(out, " -> {{ {} }}", Separated(clauses, " "))?,
        }
        out.write_char(';')
    }
}

impl Predicate {
    const fn is_chain(&self) -> bool {
        matches!(self, Self::All(_) | Self::Any(_))
    }
}

impl Display for Predicate {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => value.fmt(out),
            Self::Not(test) => write!(out, "!{}", Enclosed(&**test, test.is_chain())),
            Self::All(tests) => joined(out, tests, " && ", Self::is_chain),
            Self::Any(tests) => joined(out, tests, " || ", |test| matches!(test, Self::Any(_))),
            Self::Strings(left, by, right) => write!(out, "{left} {by} {right}"),
            Self::Integers(left, by, right) => write!(out, "{left} {by} {right}"),
            Self::Floats(left, by, right) => write!(out, "{left} {by} {right}"),
            Self::Matches(left, right) => write!(out, "{left} ~= {right}"),
        }
    }
}

impl Display for Comparison {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equal => out.write_str("=="),
            Self::Unequal => out.write_str("!="),
            Self::Order(order) => order.fmt(out),
        }
    }
}

impl Display for Order {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Less => "<",
            Self::Greater => ">",
            Self::AtMost => "<=",
            Self::AtLeast => ">=",
        })
    }
}
