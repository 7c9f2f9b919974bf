//! Parses the text of an assertion into its tree (RFC 2704, section 4.6).

mod clauses;
mod cursor;
mod expression;
mod licensees;

use crate::fields::{Field, Label};
use crate::lexer::{self, Token};
use crate::limits::{CONSTANTS_MAX, TOKENS_MAX};
use crate::parse_error::{ParseError, Position};
use crate::tree::{Body, Constant, LicenseesField, StringExpr};

use cursor::Cursor;

/// An assertion's fields while they are parsed.
#[derive(Default)]
struct Draft {
    constants: Vec<Constant>,
    authorizer: Option<StringExpr>,
    licensees: Option<LicenseesField>,
    conditions: Option<Vec<crate::tree::Clause>>,
    comment: Option<String>,
    signature: Option<StringExpr>,
    /// Number of tokens in all fields so far.
    tokens: usize,
}

/// Parses the fields of an assertion: the body, and the signature.
///
/// # Errors
/// The first error, in the order of the text.
pub(crate) fn parse(fields: &[Field<'_>]) -> Result<(Body, Option<StringExpr>), ParseError> {
    let mut draft = Draft::default();
    for field in fields {
        draft.field(field)?;
    }
    let missing = || {
        let at = fields.first().map_or(Position { line: 1, column: 1 }, |field| field.at);
        ParseError::new(at, "an assertion with an Authorizer field", "none")
    };
    let body = Body {
        constants: draft.constants,
        authorizer: draft.authorizer.ok_or_else(missing)?,
        licensees: draft.licensees.unwrap_or(LicenseesField::Missing),
        conditions: draft.conditions,
        comment: draft.comment,
    };
    Ok((body, draft.signature))
}

impl Draft {
    fn field(&mut self, field: &Field<'_>) -> Result<(), ParseError> {
        if field.label == Label::Comment {
            self.comment = Some(comment(field.content));
            return Ok(());
        }
        let left = TOKENS_MAX - self.tokens;
        let tokens = lexer::tokens(field.content, field.content_at, left)?;
        self.tokens += tokens.len();
        let mut cursor = Cursor::new(tokens);
        match field.label {
            Label::Version => version(&mut cursor)?,
            Label::LocalConstants => self.constants = constants(&mut cursor)?,
            Label::Authorizer => self.authorizer = Some(expression::string(&mut cursor)?),
            Label::Licensees => self.licensees = Some(licensees::field(&mut cursor)?),
            Label::Conditions => self.conditions = Some(clauses::program(&mut cursor)?),
            Label::Signature => self.signature = Some(expression::string(&mut cursor)?),
            Label::Comment => {}
        }
        cursor.expect_end()
    }
}

/// Parses the version, which must be 2 (section 4.6.1).
fn version(cursor: &mut Cursor) -> Result<(), ParseError> {
    match cursor.peek() {
        Token::Integer(2) => {}
        Token::Text(text) if text == "2" => {}
        _ => return Err(cursor.error("version 2")),
    }
    cursor.next();
    Ok(())
}

/// Parses names and values (section 4.6.2). Names that begin with an underscore are reserved
/// (section 3).
fn constants(cursor: &mut Cursor) -> Result<Vec<Constant>, ParseError> {
    let mut constants: Vec<Constant> = Vec::new();
    while *cursor.peek() != Token::End {
        let known = |name: &str| constants.iter().any(|constant| constant.name == name);
        let name = match cursor.peek() {
            Token::Name(name) if name.starts_with('_') => {
                return Err(cursor.error("a name that does not begin with an underscore"));
            }
            Token::Name(name) if known(name) => {
                return Err(cursor.error("each name once"));
            }
            Token::Name(name) if constants.len() < CONSTANTS_MAX => name.clone(),
            Token::Name(_) => return Err(cursor.error("fewer names")),
            _ => return Err(cursor.error("the name of an attribute")),
        };
        cursor.next();
        cursor.expect("=")?;
        let Token::Text(value) = cursor.peek().clone() else {
            return Err(cursor.error("a quoted string"));
        };
        cursor.next();
        constants.push(Constant { name, value });
    }
    Ok(constants)
}

/// The lines of a Comment field without indentation, empty lines and comment lines.
pub(crate) fn comment(content: &str) -> String {
    let lines = content.split('\n').filter(|line| !line.starts_with('#'));
    let lines: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("\n")
}
