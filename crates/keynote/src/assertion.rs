//! An assertion: its text and its parsed content.

use crate::fields::{self, Label};
use crate::limits::{FILE_BYTES_MAX, TEXT_BYTES_MAX};
use crate::parse_error::{ParseError, Position};
use crate::parser;
use crate::tree::{Body, SourceLine, StringExpr};

/// A parsed assertion. Its author is not verified.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    /// The text from the first label to the end of the last field.
    text: String,
    /// Bytes of the text that a signature covers: those before the Signature label, or all.
    covered: usize,
    /// The line of its first field in the parsed text, from 1.
    first_line: SourceLine,
    body: Body,
    signature: Option<StringExpr>,
}

impl Assertion {
    /// Parses one assertion (RFC 2704, section 4). Text after the Signature field is not part of
    /// it; text of another assertion after an empty line is an error.
    ///
    /// Strings and comments may have any UTF-8 characters except NUL and carriage return; an escape
    /// such as `\351` stands for the character of that number.
    ///
    /// # Errors
    /// The first fault of the text, or a limit of [`crate::limits`] that it exceeds.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        Self::parse_at(checked(text.as_ref(), TEXT_BYTES_MAX)?, 1)
    }

    /// Parses assertions that are separated by empty lines (section 4.1). Lines are counted from
    /// the beginning of the text.
    ///
    /// # Errors
    /// The first fault of the text, or a limit of [`crate::limits`] that it exceeds.
    pub fn parse_all(text: impl AsRef<[u8]>) -> Result<Vec<Self>, ParseError> {
        let text = checked(text.as_ref(), FILE_BYTES_MAX)?;
        let parts = paragraphs(text).into_iter();
        let is_comment = |part: &str| part.lines().all(|line| line.starts_with('#'));
        let parts = parts.filter(|(part, _)| !is_comment(part));
        parts.map(|(part, first_line)| Self::parse_at(part, first_line)).collect()
    }

    /// Parses one assertion whose text begins at a line of a longer text.
    fn parse_at(text: &str, first_line: u32) -> Result<Self, ParseError> {
        let at = Position { line: first_line, column: 1 };
        check_length(text.len(), TEXT_BYTES_MAX, at)?;
        let fields = fields::split(text, first_line)?;
        let (body, signature) = parser::parse(&fields)?;
        let start = fields.first().map_or(0, |field| field.start);
        let first_line = fields.first().map_or(first_line, |field| field.at.line);
        let end = fields.last().map_or(0, |field| field.end());
        let signed = fields.last().filter(|field| field.label == Label::Signature);
        let covered = signed.map_or(end, |field| field.start) - start;
        let text = text.get(start..end).unwrap_or_default().to_owned();
        Ok(Self { text, covered, first_line: SourceLine(first_line), body, signature })
    }

    /// The text, from the first field to the end of the last one.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The line of its first field in the parsed text, from 1. Lines of clauses are counted in the
    /// same text.
    #[must_use]
    pub const fn first_line(&self) -> u32 {
        self.first_line.0
    }

    /// The part of the text that a signature covers (section 4.6.7).
    #[must_use]
    pub fn covered_text(&self) -> &str {
        self.text.get(..self.covered).unwrap_or_default()
    }

    /// The content of the text, except for the signature.
    #[must_use]
    pub const fn body(&self) -> &Body {
        &self.body
    }

    /// The content of the Signature field, if there is one.
    #[must_use]
    pub const fn signature(&self) -> Option<&StringExpr> {
        self.signature.as_ref()
    }
}

/// The parts of a text between empty lines, with the line at which each begins.
fn paragraphs(text: &str) -> Vec<(&str, u32)> {
    let mut parts = Vec::new();
    let mut begin = None;
    let mut start = 0;
    for (line, number) in text.split_inclusive('\n').zip(1..) {
        if line.trim().is_empty() {
            begin = None;
        } else {
            let (from, first_line) = *begin.get_or_insert((start, number));
            let part = text.get(from..start + line.len()).unwrap_or_default();
            if from < start {
                parts.pop();
            }
            parts.push((part, first_line));
        }
        start += line.len();
    }
    parts
}

/// Checks the length of a text, its encoding, and that it has no forbidden characters.
fn checked(bytes: &[u8], bytes_max: usize) -> Result<&str, ParseError> {
    check_length(bytes.len(), bytes_max, Position { line: 1, column: 1 })?;
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        ParseError::new(behind(&String::from_utf8_lossy(before)), "UTF-8", "other bytes")
    })?;
    match text.find(['\0', '\r']) {
        None => Ok(text),
        Some(at) => {
            let at = behind(text.get(..at).unwrap_or_default());
            Err(ParseError::new(at, "a text character", "a NUL or carriage return"))
        }
    }
}

fn check_length(bytes: usize, bytes_max: usize, at: Position) -> Result<(), ParseError> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(ParseError::new(at, format!("at most {bytes_max} bytes"), format!("{bytes} bytes")))
}

/// The position after a text.
fn behind(text: &str) -> Position {
    let line = text.matches('\n').count() as u32 + 1;
    let column = text.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u32 + 1;
    Position { line, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_covered_text_ends_before_the_signature() {
        let text = "# no part\nAuthorizer: \"a\"\n# part\nsignature: \"s\" # part\n\n# no part";
        let assertion = Assertion::parse(text).unwrap();
        assert_eq!(assertion.covered_text(), "Authorizer: \"a\"\n# part\n");
        assert!(assertion.text().ends_with("\"s\" # part\n"));
        let unsigned = Assertion::parse("Authorizer: \"a\"").unwrap();
        assert_eq!(unsigned.covered_text(), unsigned.text());
    }

    #[test]
    fn assertions_separated_by_empty_lines_keep_their_line_numbers() {
        let text = "# all\n\nAuthorizer: \"a\"\nConditions: true;\n \t\n\n# b\nAuthorizer: \"b\"";
        let all = Assertion::parse_all(text).unwrap();
        let texts: Vec<&str> = all.iter().map(Assertion::text).collect();
        assert_eq!(texts, ["Authorizer: \"a\"\nConditions: true;\n", "Authorizer: \"b\""]);
        let line = |assertion: &Assertion| {
            assertion.body().conditions.as_ref().map(|clauses| clauses[0].line.0)
        };
        assert_eq!(line(&all[0]), Some(4));
        let error = Assertion::parse_all(format!("{text}\nComment\n")).unwrap_err();
        assert_eq!((error.line, error.expected.as_str()), (9, "a field"));
        assert_eq!(Assertion::parse_all("# none\n"), Ok(Vec::new()));
    }

    #[test]
    fn invalid_bytes_are_refused_with_their_position() {
        let fault = |bytes: &[u8]| {
            let error = Assertion::parse(bytes).unwrap_err();
            (error.line, error.column)
        };
        assert_eq!(fault(b"Authorizer: \"a\"\nComment: \xff"), (2, 10));
        assert_eq!(fault(b"Authorizer: \"a\0\""), (1, 15));
        assert_eq!(fault(b"Authorizer: \"a\"\r\n"), (1, 16));
        assert_eq!(fault(b""), (1, 1));
    }
}
