//! The textual encoding of keys and certificates (RFC 7468).

use zeroize::Zeroizing;

use crate::base64;
use crate::key_error::{KeyError, quoted};
use crate::limits::FILE_BYTES_MAX;

/// Characters of base64 per line.
const LINE_CHARS: usize = 64;

/// A PEM block.
pub(crate) struct Pem<'a> {
    /// The words after `BEGIN`.
    pub(crate) label: &'a str,
    /// The decoded bytes.
    pub(crate) der: Zeroizing<Vec<u8>>,
}

/// Returns whether a text contains the first line of a block.
pub(crate) fn is_pem(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("-----BEGIN "))
}

/// Reads the first block of a text.
///
/// # Errors
/// The text contains no block, a line that is not base64, or too many bytes.
pub(crate) fn read(text: &str) -> Result<Pem<'_>, KeyError> {
    if text.len() > FILE_BYTES_MAX {
        return Err(KeyError::TooLong);
    }
    let mut lines = text.lines().map(str::trim_end);
    let begin = lines.find_map(|line| line.strip_prefix("-----BEGIN "));
    let label = begin.and_then(|rest| rest.strip_suffix("-----"));
    let label = label.ok_or(KeyError::Malformed("a line `-----BEGIN ...-----`"))?;
    let mut encoded = Zeroizing::new(String::with_capacity(text.len()));
    for line in lines {
        if let Some(rest) = line.strip_prefix("-----END ") {
            if rest.strip_suffix("-----") != Some(label) {
                break;
            }
            return Ok(Pem { label, der: base64::decode(&encoded)? });
        }
        check_header(line)?;
        encoded.push_str(line.trim());
    }
    Err(KeyError::Malformed("the line `-----END ...-----` of the block"))
}

/// Refuses encrypted keys of the old format, which have headers (RFC 1421). Other headers do not
/// occur in keys.
fn check_header(line: &str) -> Result<(), KeyError> {
    match line.split_once(':') {
        Some((_, value)) if line.starts_with("Proc-Type") || line.starts_with("DEK-Info") => {
            Err(KeyError::UnsupportedEncryption(quoted(value.trim())))
        }
        _ => Ok(()),
    }
}

/// Writes a block.
pub(crate) fn write(label: &str, der: &[u8]) -> Zeroizing<String> {
    let encoded = Zeroizing::new(base64::encode(der));
    let mut text = Zeroizing::new(String::with_capacity(2 * encoded.len() + 128));
    text.push_str(&format!("-----BEGIN {label}-----\n"));
    for (char, at) in encoded.chars().zip(1..) {
        text.push(char);
        if at % LINE_CHARS == 0 || at == encoded.len() {
            text.push('\n');
        }
    }
    text.push_str(&format!("-----END {label}-----\n"));
    text
}
