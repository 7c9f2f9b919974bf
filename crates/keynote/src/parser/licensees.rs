//! The Licensees field (RFC 2704, section 4.6.4).

use crate::lexer::Token;
use crate::limits::LICENSEES_MAX;
use crate::parse_error::ParseError;
use crate::tree::{Licensees, LicenseesField, StringExpr};

use super::cursor::Cursor;
use super::expression::{self, one_or};

/// Parses the whole field.
pub(super) fn field(cursor: &mut Cursor) -> Result<LicenseesField, ParseError> {
    if *cursor.peek() == Token::End {
        return Ok(LicenseesField::Empty);
    }
    let licensees = any(cursor)?;
    if count(&licensees) > LICENSEES_MAX {
        return Err(cursor.error("fewer licensees"));
    }
    Ok(LicenseesField::Given(licensees))
}

fn count(licensees: &Licensees) -> usize {
    match licensees {
        Licensees::Principal(_) => 1,
        Licensees::All(parts) | Licensees::Any(parts) => parts.iter().map(count).sum(),
        Licensees::AtLeast(_, principals) => principals.len(),
    }
}

fn any(cursor: &mut Cursor) -> Result<Licensees, ParseError> {
    Ok(one_or(cursor.separated("||", all)?, Licensees::Any))
}

fn all(cursor: &mut Cursor) -> Result<Licensees, ParseError> {
    Ok(one_or(cursor.separated("&&", primary)?, Licensees::All))
}

fn primary(cursor: &mut Cursor) -> Result<Licensees, ParseError> {
    match cursor.peek() {
        Token::Integer(_) => threshold(cursor),
        Token::Symbol("(") => parenthesis(cursor),
        _ => Ok(Licensees::Principal(expression::string(cursor)?)),
    }
}

/// Parses a parenthesis, which encloses either licensees or the beginning of a string expression.
fn parenthesis(cursor: &mut Cursor) -> Result<Licensees, ParseError> {
    cursor.next();
    let inner = cursor.deeper(any)?;
    cursor.expect(")")?;
    match inner {
        Licensees::Principal(first) => {
            Ok(Licensees::Principal(expression::concatenation(cursor, first)?))
        }
        other => Ok(other),
    }
}

/// Parses `K-of(...)`. With fewer than K principals the whole assertion is invalid.
fn threshold(cursor: &mut Cursor) -> Result<Licensees, ParseError> {
    let least = match cursor.peek() {
        Token::Integer(least) if *least > 0 => *least as u32,
        _ => return Err(cursor.error("a number from 1")),
    };
    cursor.next();
    cursor.expect("-")?;
    if *cursor.peek() != Token::Name("of".into()) {
        return Err(cursor.error("`of`"));
    }
    cursor.next();
    cursor.expect("(")?;
    let principals: Vec<StringExpr> = cursor.separated(",", expression::string)?;
    if principals.len() < least as usize {
        return Err(cursor.error(&format!("at least {least} principals")));
    }
    cursor.expect(")")?;
    Ok(Licensees::AtLeast(least, principals))
}
