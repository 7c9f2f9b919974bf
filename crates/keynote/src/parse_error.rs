//! The first error in an assertion's text.

/// Most characters of the text that an error shows.
const FOUND_CHARS_MAX: usize = 40;

/// A position in a text. Lines and columns are counted from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// The place where the text of an assertion violates RFC 2704, section 4, or a limit.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: expected {expected}, found {found}")]
pub struct ParseError {
    /// Line of the error, from 1.
    pub line: u32,
    /// Column of the error in characters, from 1.
    pub column: u32,
    /// A noun phrase for what is allowed there.
    pub expected: String,
    /// A noun phrase for what is there.
    pub found: String,
}

impl ParseError {
    pub(crate) fn new(at: Position, expected: impl Into<String>, found: impl Into<String>) -> Self {
        let Position { line, column } = at;
        Self { line, column, expected: expected.into(), found: found.into() }
    }
}

/// A piece of the text, quoted, shortened, and without control characters, because it may be
/// hostile.
pub(crate) fn quoted(text: &str) -> String {
    let cut: String = text.chars().take(FOUND_CHARS_MAX).collect();
    let dots = if cut.len() < text.len() { "..." } else { "" };
    format!("`{}{dots}`", cut.escape_debug())
}
