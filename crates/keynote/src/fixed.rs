//! Expressions that have the same value in every query.

use crate::limits::STRING_BYTES_MAX;
use crate::tree::{Constant, StringExpr};

/// The value of a Local-Constants name.
pub(crate) fn constant<'a>(name: &str, constants: &'a [Constant]) -> Option<&'a str> {
    let constant = constants.iter().find(|constant| constant.name == name);
    constant.map(|constant| constant.value.as_str())
}

/// The values of constant expressions of an assertion. An assertion that often repeats a long
/// constant would expand to many times its length, so the sum of the values is limited.
pub(crate) struct FixedValues<'a> {
    constants: &'a [Constant],
    bytes_left: usize,
}

impl<'a> FixedValues<'a> {
    pub(crate) const fn new(constants: &'a [Constant]) -> Self {
        Self { constants, bytes_left: STRING_BYTES_MAX }
    }

    /// The value of an expression; `None` if it depends on the query or exceeds the limit.
    pub(crate) fn value(&mut self, expression: &StringExpr) -> Option<String> {
        match expression {
            StringExpr::Literal(text) => self.taken(text),
            StringExpr::Attribute(name) => self.taken(constant(name, self.constants)?),
            StringExpr::Dereference(name) => {
                let name = self.value(name)?;
                self.taken(constant(&name, self.constants)?)
            }
            StringExpr::Concatenation(parts) => parts.iter().map(|part| self.value(part)).collect(),
        }
    }

    fn taken(&mut self, text: &str) -> Option<String> {
        self.bytes_left = self.bytes_left.checked_sub(text.len())?;
        Some(text.to_owned())
    }
}
