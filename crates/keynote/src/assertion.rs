//! An assertion: its text and what the text says.

use crate::fields::{self, Label};
use crate::limits::TEXT_BYTES_MAX;
use crate::parse_error::{ParseError, Position};
use crate::parser;
use crate::tree::{Body, StringExpr};

/// An assertion that has been read. Nothing is known yet about who made it.
#[derive(Debug, Clone, PartialEq)]
pub struct Assertion {
    /// From the first label to the end of the last field.
    text: String,
    /// Bytes of the text that a signature covers: those in front of the Signature label, or all.
    covered: usize,
    body: Body,
    signature: Option<StringExpr>,
}

impl Assertion {
    /// Reads one assertion (RFC 2704, section 4). Text behind the Signature field is not part of
    /// it; text of another assertion behind an empty line is an error.
    ///
    /// Strings and comments may have any characters of UTF-8 but NUL and carriage returns; an
    /// escape such as `\351` stands for the character of that number.
    ///
    /// # Errors
    /// The first fault of the text, or a limit of [`crate::limits`] that it exceeds.
    pub fn parse(text: impl AsRef<[u8]>) -> Result<Self, ParseError> {
        let text = checked(text.as_ref())?;
        let fields = fields::split(text)?;
        let (body, signature) = parser::parse(&fields)?;
        let start = fields.first().map_or(0, |field| field.start);
        let end = fields.last().map_or(0, |field| field.end());
        let signed = fields.last().filter(|field| field.label == Label::Signature);
        let covered = signed.map_or(end, |field| field.start) - start;
        let text = text.get(start..end).unwrap_or_default().to_owned();
        Ok(Self { text, covered, body, signature })
    }

    /// The text, from the first field to the end of the last one.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
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

/// The text of bytes that have no more than the limit and no characters that are never allowed.
fn checked(bytes: &[u8]) -> Result<&str, ParseError> {
    let start = Position { line: 1, column: 1 };
    if bytes.len() > TEXT_BYTES_MAX {
        let found = format!("{} bytes", bytes.len());
        return Err(ParseError::new(start, format!("at most {TEXT_BYTES_MAX} bytes"), found));
    }
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

/// The place behind a text.
fn behind(text: &str) -> Position {
    let line = text.matches('\n').count() as u32 + 1;
    let column = text.rsplit('\n').next().map_or(0, |last| last.chars().count()) as u32 + 1;
    Position { line, column }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_covered_text_ends_in_front_of_the_signature() {
        let text = "# no part\nAuthorizer: \"a\"\n# part\nsignature: \"s\" # part\n\n# no part";
        let assertion = Assertion::parse(text).unwrap();
        assert_eq!(assertion.covered_text(), "Authorizer: \"a\"\n# part\n");
        assert!(assertion.text().ends_with("\"s\" # part\n"));
        let unsigned = Assertion::parse("Authorizer: \"a\"").unwrap();
        assert_eq!(unsigned.covered_text(), unsigned.text());
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_where_they_are() {
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
