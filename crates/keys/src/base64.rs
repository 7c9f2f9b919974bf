//! Base64 with padding (RFC 4648, section 4) and hexadecimal digits, for keys and signatures.

use base64ct::{Base64, Encoding};
use zeroize::Zeroizing;

use crate::key_error::KeyError;

/// Encodes bytes as base64.
pub(crate) fn encode(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

/// Encodes bytes as base64 without padding, as in fingerprints of OpenSSH.
pub(crate) fn encode_unpadded(bytes: &[u8]) -> String {
    base64ct::Base64Unpadded::encode_string(bytes)
}

/// Decodes base64; the bytes may be secret.
///
/// # Errors
/// Characters outside the alphabet, wrong padding, or unused bits that are not zero.
pub(crate) fn decode(text: &str) -> Result<Zeroizing<Vec<u8>>, KeyError> {
    let bytes = Base64::decode_vec(text).map_err(|_| KeyError::Malformed("base64"))?;
    Ok(Zeroizing::new(bytes))
}

/// Decodes pairs of hexadecimal digits.
pub(crate) fn decode_hex(text: &str) -> Result<Vec<u8>, KeyError> {
    let wrong = KeyError::Malformed("pairs of hexadecimal digits");
    let digits: Option<Vec<u8>> =
        text.chars().map(|char| char.to_digit(16).map(|digit| digit as u8)).collect();
    let digits = digits.filter(|digits| digits.len().is_multiple_of(2)).ok_or(wrong)?;
    Ok(digits
        .chunks_exact(2)
        .map(|pair| pair.iter().fold(0, |all, digit| all << 4 | digit))
        .collect())
}
