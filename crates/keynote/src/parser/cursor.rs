//! The unread tokens of a field, and the recursion depth of the parser.

use std::iter::Peekable;
use std::vec::IntoIter;

use crate::lexer::{Placed, Token};
use crate::limits::DEPTH_MAX;
use crate::parse_error::{ParseError, Position};

/// The unread tokens of a field.
pub(super) struct Cursor {
    tokens: Peekable<IntoIter<Placed>>,
    end: Placed,
    depth: usize,
}

impl Cursor {
    /// Begins at the first of the tokens, whose last one is `End`.
    pub(super) fn new(mut tokens: Vec<Placed>) -> Self {
        let end = tokens.pop().unwrap_or((Token::End, Position { line: 1, column: 1 }));
        Self { tokens: tokens.into_iter().peekable(), end, depth: 0 }
    }

    fn placed(&mut self) -> &Placed {
        self.tokens.peek().unwrap_or(&self.end)
    }

    pub(super) fn peek(&mut self) -> &Token {
        &self.placed().0
    }

    /// The position of the next token.
    pub(super) fn at(&mut self) -> Position {
        self.placed().1
    }

    pub(super) fn next(&mut self) -> Token {
        self.tokens.next().map_or(Token::End, |(token, _)| token)
    }

    /// Skips a symbol if it is the next token; returns whether it was.
    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Symbol(next) if *next == symbol);
        if is_it {
            self.next();
        }
        is_it
    }

    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), ParseError> {
        if self.take(symbol) { Ok(()) } else { Err(self.error(&format!("`{symbol}`"))) }
    }

    pub(super) fn expect_end(&mut self) -> Result<(), ParseError> {
        match self.peek() {
            Token::End => Ok(()),
            _ => Err(self.error("an operator or the end of the field")),
        }
    }

    /// Makes an error for an unexpected next token.
    pub(super) fn error(&mut self, expected: &str) -> ParseError {
        let (token, at) = self.placed();
        ParseError::new(*at, expected, token.described())
    }

    /// Parses something one level deeper.
    ///
    /// # Errors
    /// Those of the parser, and a nesting deeper than the limit.
    pub(super) fn deeper<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, ParseError>,
    ) -> Result<T, ParseError> {
        if self.depth == DEPTH_MAX {
            return Err(self.error("a nesting that is less deep"));
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Parses one or more parts that are separated by a symbol.
    ///
    /// # Errors
    /// Those of the parser.
    pub(super) fn separated<T>(
        &mut self,
        symbol: &str,
        mut read: impl FnMut(&mut Self) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        let mut parts = vec![read(self)?];
        while self.take(symbol) {
            parts.push(read(self)?);
        }
        Ok(parts)
    }
}
