use std::fmt;
use std::str::FromStr;

use crate::limits::OBJECT_ID_PARTS_MAX;

/// An object identifier (X.660), such as `1.3.6.1`.
#[derive(Clone, PartialEq, Eq)]
pub struct ObjectId {
    text: Box<str>,
    /// The content of its DER encoding.
    der: Box<[u8]>,
}

impl ObjectId {
    /// Returns whether these bytes are its DER encoding.
    pub(crate) fn is(&self, der: &[u8]) -> bool {
        *self.der == *der
    }
}

/// The error for a text that is not an object identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no object identifier: expected numbers with dots between them, as in 1.3.6.1.5.5.7.8.1")]
pub struct NoObjectId;

impl FromStr for ObjectId {
    type Err = NoObjectId;

    fn from_str(text: &str) -> Result<Self, NoObjectId> {
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let number = |part: &str| is_number(part).then(|| part.parse::<u32>().ok()).flatten();
        let parts: Option<Vec<u32>> =
            text.split('.').take(OBJECT_ID_PARTS_MAX + 1).map(number).collect();
        let parts = parts.filter(|parts| parts.len() <= OBJECT_ID_PARTS_MAX).ok_or(NoObjectId)?;
        let [top @ 0..=2, second, rest @ ..] = &*parts else { return Err(NoObjectId) };
        // The first two arcs share a number (X.690, 8.19.4).
        if *second > if *top < 2 { 39 } else { u32::MAX - 80 } {
            return Err(NoObjectId);
        }
        let mut der = Vec::new();
        put(40 * top + second, &mut der);
        rest.iter().for_each(|part| put(*part, &mut der));
        Ok(Self { text: text.into(), der: der.into() })
    }
}

/// Appends a number in groups of seven bits; all but the last have the high bit set.
fn put(number: u32, der: &mut Vec<u8>) {
    let groups = (1..5).filter(|group| number >> (7 * group) > 0).count();
    for group in (0..=groups).rev() {
        let bits = (number >> (7 * group)) as u8 & 0x7f;
        der.push(if group > 0 { bits | 0x80 } else { bits });
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_identifier_is_encoded() {
        let is = |text: &str, der: &[u8]| text.parse::<ObjectId>().unwrap().is(der);
        assert!(is("2.5.29.17", &[0x55, 0x1d, 0x11]));
        assert!(is("1.3.6.1.5.5.7.8", &[0x2b, 6, 1, 5, 5, 7, 8]));
        assert!(is("1.2.840.113549", &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d]));
        assert!(is("2.999.4294967295", &[0x88, 0x37, 0x8f, 0xff, 0xff, 0xff, 0x7f]));
    }

    #[test]
    fn text_that_is_not_an_object_identifier_is_refused() {
        for text in
            ["", "1", "3.1", "1.40", "1..2", "1.2.x", "1.2.4294967296", "+1.2", "2.4294967295"]
        {
            assert!(text.parse::<ObjectId>().is_err(), "{text}");
        }
        assert!("1.2".repeat(40).parse::<ObjectId>().is_err());
    }
}
