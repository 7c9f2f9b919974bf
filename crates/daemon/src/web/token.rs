use std::fmt;
use std::fmt::Write;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

/// Random bytes of a token.
pub(crate) const TOKEN_BYTES: usize = 16;

/// The secret by which a browser proves that its user may see and change the server: who can read
/// the state folder.
pub(crate) struct Token(String);

impl Token {
    /// Makes a token of random bytes.
    pub(crate) fn new(bytes: [u8; TOKEN_BYTES]) -> Self {
        let mut text = String::new();
        for byte in bytes {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        Self(text)
    }

    /// Reads a token; `None` if the text is none.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim_end();
        let is_hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_token = text.len() == 2 * TOKEN_BYTES && text.bytes().all(is_hexadecimal);
        is_token.then(|| Self(text.to_owned()))
    }

    /// Returns the token as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a request carries the token, as `Authorization: Bearer TOKEN`. The time does
    /// not depend on which byte differs.
    pub(crate) fn is_in(&self, headers: &HeaderMap) -> bool {
        let Some(value) = headers.get(AUTHORIZATION) else { return false };
        let Some(shown) = value.as_bytes().strip_prefix(b"Bearer ") else { return false };
        let differing = shown.iter().zip(self.0.as_bytes()).fold(0, |all, (a, b)| all | (a ^ b));
        shown.len() == self.0.len() && differing == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(secret)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn only_the_whole_token_counts() {
        let token = Token::new([0xa5; TOKEN_BYTES]);
        let shows = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_str(value).unwrap());
            token.is_in(&headers)
        };
        let whole = "a5".repeat(TOKEN_BYTES);
        assert!(shows(&format!("Bearer {whole}")));
        let (short, last) = (&whole[..31], format!("{}6", &whole[..31]));
        for wrong in ["", short, &last, &format!("{whole}a")] {
            assert!(!shows(&format!("Bearer {wrong}")), "{wrong}");
        }
        assert!(!shows(&whole) && !token.is_in(&HeaderMap::new()));
    }

    #[test]
    fn a_file_that_holds_something_else_is_no_token() {
        let token = Token::new([7; TOKEN_BYTES]);
        assert_eq!(Token::parse(&format!("{}\n", token.as_str())).unwrap().0, token.0);
        let long = "0".repeat(2 * TOKEN_BYTES + 1);
        for wrong in ["", "12", &long, &"G".repeat(2 * TOKEN_BYTES)] {
            assert!(Token::parse(wrong).is_none(), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(secret)");
    }
}
