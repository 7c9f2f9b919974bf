//! The token of the web page.

use std::fmt;
use std::fmt::Write;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

/// Random bytes of a token.
pub(crate) const TOKEN_BYTES: usize = 16;

/// The secret by which a browser proves that its user may see and change the server, because the
/// user can read the state folder.
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

    /// Returns the token as text.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether a request carries the token, as `Authorization: Bearer TOKEN`. The
    /// comparison takes the same time for all wrong tokens.
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
    fn only_the_whole_token_is_accepted() {
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
    fn a_token_is_not_shown_by_debug() {
        let token = Token::new([7; TOKEN_BYTES]);
        assert_eq!(token.as_str(), "07".repeat(TOKEN_BYTES));
        assert_eq!(format!("{token:?}"), "Token(secret)");
    }
}
