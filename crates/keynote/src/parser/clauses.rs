//! The Conditions field (RFC 2704, section 4.6.5).

use crate::lexer::Token;
use crate::parse_error::ParseError;
use crate::tree::{Clause, Consequence, SourceLine};

use super::cursor::Cursor;
use super::expression;

/// Parses clauses up to the end of the field or a closing brace.
pub(super) fn program(cursor: &mut Cursor) -> Result<Vec<Clause>, ParseError> {
    let mut clauses = Vec::new();
    while !matches!(cursor.peek(), Token::End | Token::Symbol("}")) {
        clauses.push(clause(cursor)?);
    }
    Ok(clauses)
}

fn clause(cursor: &mut Cursor) -> Result<Clause, ParseError> {
    let line = SourceLine(cursor.at().line);
    let test = expression::test(cursor)?;
    let outcome = if cursor.take("->") { outcome(cursor)? } else { Consequence::Maximum };
    if !cursor.take(";") {
        return Err(cursor.error("an operator, `->` or `;`"));
    }
    Ok(Clause { line, test, outcome })
}

fn outcome(cursor: &mut Cursor) -> Result<Consequence, ParseError> {
    if !cursor.take("{") {
        return Ok(Consequence::Value(expression::string(cursor)?));
    }
    let clauses = cursor.deeper(program)?;
    cursor.expect("}")?;
    Ok(Consequence::Program(clauses))
}
