//! Bytes of SSH and text of PEM, written without the crate that is tested.
#![allow(dead_code, reason = "each test uses some of it")]

/// Strings, each preceded by its length.
pub(crate) fn strings(strings: &[&[u8]]) -> Vec<u8> {
    let parts = strings.iter().map(|string| {
        let length = (string.len() as u32).to_be_bytes();
        [&length[..], string].concat()
    });
    parts.collect::<Vec<_>>().concat()
}

/// A number that is not negative, as SSH encodes it: without leading zeros, except for one if the
/// highest bit would make the number negative.
pub(crate) fn number(bytes: &[u8]) -> Vec<u8> {
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(bytes.len());
    let digits = &bytes[start..];
    let sign: &[u8] = if digits.first().is_some_and(|first| *first >= 0x80) { &[0] } else { &[] };
    strings(&[&[sign, digits].concat()])
}

/// A PEM block with all of the base64 in one line.
pub(crate) fn pem(label: &str, bytes: &[u8]) -> String {
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", base64(bytes))
}

/// Base64 with padding.
pub(crate) fn base64(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let mut padded = [0; 4];
        padded[1..=chunk.len()].copy_from_slice(chunk);
        let number = u32::from_be_bytes(padded);
        for digit in 0..4 {
            let value = number >> (18 - 6 * digit) & 63;
            text.push(if digit > chunk.len() { '=' } else { alphabet[value as usize].into() });
        }
    }
    text
}
