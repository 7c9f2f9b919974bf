//! Splits the content of a field into tokens (RFC 2704, sections 4.2, 4.3.1 and 4.6.5).

use std::iter::Peekable;
use std::str::Chars;

use crate::parse_error::{ParseError, Position, quoted};

/// A token of the grammar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    /// An attribute name.
    Name(String),
    /// A quoted string without its escapes.
    Text(String),
    Integer(i32),
    Float(f32),
    Symbol(&'static str),
    /// The end of the field.
    End,
}

impl Token {
    /// Describes it as a noun phrase, for an error.
    pub(crate) fn described(&self) -> String {
        match self {
            Self::Name(name) => quoted(name),
            Self::Text(text) => format!("the string {}", quoted(text)),
            Self::Integer(number) => format!("`{number}`"),
            Self::Float(number) => format!("`{number}`"),
            Self::Symbol(symbol) => format!("`{symbol}`"),
            Self::End => "the end of the field".into(),
        }
    }
}

/// All symbols; longer ones precede their prefixes.
const SYMBOLS: [&str; 28] = [
    "&&", "||", "->", "==", "!=", "<=", ">=", "~=", "(", ")", "{", "}", ";", ",", ".", "+", "-",
    "*", "/", "%", "^", "!", "<", ">", "@", "&", "$", "=",
];

/// Bytes of a usual token with the space behind it.
const TOKEN_BYTES: usize = 8;

/// A token with its position.
pub(crate) type Placed = (Token, Position);

/// Reads all tokens of a field's content that begins at `at`; `End` is the last one.
///
/// # Errors
/// A character that begins no token, a number out of range, an unterminated string, or more than
/// `tokens_max` tokens.
pub(crate) fn tokens(
    content: &str,
    at: Position,
    tokens_max: usize,
) -> Result<Vec<Placed>, ParseError> {
    let mut lexer = Lexer { chars: content.chars().peekable(), at };
    // A list that grows costs more than its tokens; most have at least this many bytes.
    let mut found = Vec::with_capacity(tokens_max.min(content.len() / TOKEN_BYTES + 1));
    loop {
        let behind = lexer.at;
        lexer.skip_space();
        let at = if lexer.chars.peek().is_some() { lexer.at } else { behind };
        let token = lexer.token()?;
        if found.len() >= tokens_max {
            return Err(ParseError::new(at, "fewer tokens in an assertion", token.described()));
        }
        let is_end = token == Token::End;
        found.push((token, at));
        if is_end {
            return Ok(found);
        }
    }
}

fn begins_name(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_'
}

fn continues_name(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

struct Lexer<'a> {
    chars: Peekable<Chars<'a>>,
    at: Position,
}

impl Lexer<'_> {
    fn next(&mut self) -> Option<char> {
        let char = self.chars.next()?;
        if char == '\n' {
            self.at = Position { line: self.at.line + 1, column: 1 };
        } else {
            self.at.column += 1;
        }
        Some(char)
    }

    fn take_if(&mut self, wanted: impl Fn(char) -> bool) -> Option<char> {
        self.chars.peek().copied().filter(|char| wanted(*char))?;
        self.next()
    }

    fn take_while(&mut self, wanted: impl Fn(char) -> bool + Copy) -> String {
        let mut taken = String::with_capacity(self.bytes_ahead(wanted));
        taken.extend(std::iter::from_fn(|| self.take_if(wanted)));
        taken
    }

    /// Bytes of the wanted characters that come next.
    fn bytes_ahead(&self, wanted: impl Fn(char) -> bool) -> usize {
        self.chars.clone().take_while(|char| wanted(*char)).map(char::len_utf8).sum()
    }

    fn skip_space(&mut self) {
        while let Some(char) = self.take_if(|char| matches!(char, ' ' | '\t' | '\n' | '#')) {
            if char == '#' {
                self.take_while(|char| char != '\n');
            }
        }
    }

    fn token(&mut self) -> Result<Token, ParseError> {
        match self.chars.peek() {
            None => Ok(Token::End),
            Some('"') => self.text(),
            Some('0'..='9') => self.number(),
            Some(char) if begins_name(*char) => Ok(Token::Name(self.take_while(continues_name))),
            Some(_) => self.symbol(),
        }
    }

    fn symbol(&mut self) -> Result<Token, ParseError> {
        let mut ahead = self.chars.clone();
        let (first, second) = (ahead.next(), ahead.next());
        let is_next = |symbol: &&str| {
            let mut chars = symbol.chars();
            chars.next() == first && chars.next().is_none_or(|char| Some(char) == second)
        };
        let Some(symbol) = SYMBOLS.into_iter().find(is_next) else {
            let first: String = first.into_iter().collect();
            return Err(ParseError::new(self.at, "a token", quoted(&first)));
        };
        for _ in symbol.chars() {
            self.next();
        }
        Ok(Token::Symbol(symbol))
    }

    fn number(&mut self) -> Result<Token, ParseError> {
        let at = self.at;
        let mut digits = self.take_while(|char| char.is_ascii_digit());
        let mut ahead = self.chars.clone();
        let is_float =
            ahead.next() == Some('.') && ahead.next().is_some_and(|c| c.is_ascii_digit());
        if !is_float {
            let too_large = |_| ParseError::new(at, "an integer up to 2147483647", quoted(&digits));
            return digits.parse().map(Token::Integer).map_err(too_large);
        }
        digits.extend(self.next());
        digits.push_str(&self.take_while(|char| char.is_ascii_digit()));
        let value = digits.parse().ok().filter(|value: &f32| value.is_finite());
        value
            .map(Token::Float)
            .ok_or_else(|| ParseError::new(at, "a number up to 3.40282347e38", quoted(&digits)))
    }

    fn text(&mut self) -> Result<Token, ParseError> {
        let begin = self.at;
        self.next();
        let mut text = String::with_capacity(self.bytes_ahead(|char| char != '"'));
        loop {
            let at = self.at;
            match self.next() {
                Some('"') => return Ok(Token::Text(text)),
                Some('\\') => self.escape(&mut text, begin)?,
                Some('\n') => return Err(ParseError::new(at, "`\"`", "the end of the line")),
                Some(char) => text.push(char),
                None => return Err(unclosed(begin)),
            }
        }
    }

    /// Reads the rest of an escape after its backslash, in a string that began at `begin`.
    fn escape(&mut self, text: &mut String, begin: Position) -> Result<(), ParseError> {
        if let Some(first) = self.take_if(|char| matches!(char, '0'..='7')) {
            self.octal(first, text);
            return Ok(());
        }
        match self.next().ok_or_else(|| unclosed(begin))? {
            '\n' => drop(self.take_while(|char| matches!(char, ' ' | '\t' | '\n'))),
            'n' => text.push('\n'),
            'r' => text.push('\r'),
            't' => text.push('\t'),
            'f' => text.push('\u{c}'),
            other => text.push(other),
        }
        Ok(())
    }

    /// Reads `\0o`, `\0oo` or `\ooo`. Other digits, and zero, stand for themselves, because a
    /// string cannot contain a NUL.
    fn octal(&mut self, first: char, text: &mut String) {
        let mut digits = String::from(first);
        let mut ahead = self.chars.clone();
        let following = ahead.by_ref().take(2).take_while(|c| matches!(c, '0'..='7'));
        digits.extend(following);
        let is_whole = digits.len() == 3 || (first == '0' && digits.len() == 2);
        let value = u8::from_str_radix(&digits, 8).ok().filter(|value| is_whole && *value != 0);
        for _ in digits.chars().skip(1) {
            self.next();
        }
        match value {
            Some(value) => text.push(char::from(value)),
            None => text.push_str(&digits),
        }
    }
}

fn unclosed(begin: Position) -> ParseError {
    ParseError::new(begin, "a string that ends", "the end of the field")
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Position = Position { line: 1, column: 1 };

    fn text_of(literal: &str) -> String {
        match tokens(literal, START, 9).unwrap().remove(0).0 {
            Token::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_four_strings_of_the_rfc_are_equal() {
        let expected = "this string contains a newline\n followed by one space.";
        for literal in [
            r#""this string contains a newline\n followed by one space.""#,
            "\"this string contains a newline\\n \\\n    followed by one space.\"",
            "\"this str\\\n  ing contains a \\\n    newline\\n followed by one space.\"",
            r#""this string contains a newline\012\040followed by one space.""#,
        ] {
            assert_eq!(text_of(literal), expected, "{literal}");
        }
    }

    #[test]
    fn escapes_are_decoded_as_section_4_3_1_says() {
        for (literal, expected) in [
            (r#""\a\\\"""#, "a\\\""),
            (r#""\101\377""#, "A\u{ff}"),
            (r#""\0\00\000""#, "000000"),
            (r#""\01\012\0123""#, "\u{1}\n\n3"),
            (r#""\1\12\778\400""#, "112778400"),
            (r#""\n\r\t\f""#, "\n\r\t\u{c}"),
        ] {
            assert_eq!(text_of(literal), expected, "{literal}");
        }
    }

    #[test]
    fn unterminated_strings_are_refused_with_their_position() {
        let fault = |text: &str| {
            let error = tokens(text, START, 9).unwrap_err();
            (error.line, error.column, error.expected)
        };
        assert_eq!(fault("a \"b"), (1, 3, "a string that ends".into()));
        assert_eq!(fault("a\n \"b\\"), (2, 2, "a string that ends".into()));
        assert_eq!(fault("\"ab\n c\""), (1, 4, "`\"`".into()));
    }

    #[test]
    fn numbers_names_and_symbols_are_distinguished() {
        let found = tokens("_a1<=1.5.x->2-1 # ->\n->{", START, 99).unwrap();
        let expected = [
            Token::Name("_a1".into()),
            Token::Symbol("<="),
            Token::Float(1.5),
            Token::Symbol("."),
            Token::Name("x".into()),
            Token::Symbol("->"),
            Token::Integer(2),
            Token::Symbol("-"),
            Token::Integer(1),
            Token::Symbol("->"),
            Token::Symbol("{"),
            Token::End,
        ];
        assert_eq!(found.iter().map(|(token, _)| token.clone()).collect::<Vec<_>>(), expected);
        assert_eq!(found[9].1, Position { line: 2, column: 1 });
    }

    #[test]
    fn numbers_out_of_range_and_unknown_characters_are_refused() {
        assert!(tokens("2147483647", START, 9).is_ok());
        for text in ["2147483648", &format!("{}.0", "9".repeat(39)), "?", "\u{e9}", "a\r"] {
            assert!(tokens(text, START, 9).is_err(), "{text}");
        }
    }
}
