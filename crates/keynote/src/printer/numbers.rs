//! Numbers and numeric expressions.

use std::fmt::{self, Display, Formatter};

use crate::tree::{Arithmetic, Operator, StringExpr};

use super::Enclosed;

/// A type of numbers that can be written.
trait Written: Display {
    /// The operator that converts a string to this type.
    const CONVERSION: char;

    fn literal(&self) -> String;
}

impl Written for i32 {
    const CONVERSION: char = '@';

    fn literal(&self) -> String {
        self.to_string()
    }
}

impl Written for f32 {
    const CONVERSION: char = '&';

    fn literal(&self) -> String {
        let text = self.to_string();
        if text.contains('.') { text } else { text + ".0" }
    }
}

impl<T: Written> Display for Arithmetic<T> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Literal(number) => out.write_str(&number.literal()),
            Self::Converted(text) => {
                let is_chain = matches!(text, StringExpr::Concatenation(_));
                write!(out, "{}{}", T::CONVERSION, Enclosed(text, is_chain))
            }
            Self::Negated(number) => {
                write!(out, "-{}", Enclosed(&**number, matches!(**number, Self::Chain(..))))
            }
            Self::Chain(first, rest) => chain(out, first, rest),
        }
    }
}

fn chain<T: Written>(
    out: &mut Formatter<'_>,
    first: &Arithmetic<T>,
    rest: &[(Operator, Arithmetic<T>)],
) -> fmt::Result {
    let class = rest.first().map_or(0, |(operator, _)| operator.class());
    let enclosed = |part| Enclosed(part, class_of(part).is_some_and(|inner| inner <= class));
    enclosed(first).fmt(out)?;
    rest.iter().try_for_each(|(operator, part)| write!(out, " {operator} {}", enclosed(part)))
}

/// The precedence class of a chain's operators.
fn class_of<T>(number: &Arithmetic<T>) -> Option<usize> {
    match number {
        Arithmetic::Chain(_, rest) => rest.first().map(|(operator, _)| operator.class()),
        _ => None,
    }
}

impl Display for Operator {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
            Self::Power => "^",
        })
    }
}
