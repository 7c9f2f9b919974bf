//! Strings and string expressions.

use std::fmt::{self, Display, Formatter, Write};

use crate::tree::StringExpr;

use super::{Enclosed, joined};

/// A quoted string with escapes (RFC 2704, section 4.3.1).
pub(super) struct Literal<'a>(pub(super) &'a str);

impl Display for Literal<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_char('"')?;
        for char in self.0.chars() {
            match char {
                '"' | '\\' => write!(out, "\\{char}")?,
                '\n' => out.write_str("\\n")?,
                '\r' => out.write_str("\\r")?,
                '\t' => out.write_str("\\t")?,
                '\u{c}' => out.write_str("\\f")?,
                // A string cannot contain a NUL; all other control characters are below 256.
                '\0' => {}
                _ if char.is_control() => write!(out, "\\{:03o}", u32::from(char))?,
                _ => out.write_char(char)?,
            }
        }
        out.write_char('"')
    }
}

impl Display for StringExpr {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let is_chain = |part: &Self| matches!(part, Self::Concatenation(_));
        match self {
            Self::Literal(text) => Literal(text).fmt(out),
            Self::Attribute(name) => out.write_str(name),
            Self::Dereference(name) => write!(out, "${}", Enclosed(&**name, is_chain(name))),
            Self::Concatenation(parts) => joined(out, parts, " . ", is_chain),
        }
    }
}
