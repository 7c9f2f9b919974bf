use std::fmt;
use std::str::FromStr;

use comity_vfs::Handle;
use comity_vfs::limits::HANDLE_BYTES_MAX;

/// The id by which credentials name an object: an `x`, the bytes of its handle as hexadecimal
/// digits, and a `z`. A handle contains a generation, so an object that reuses an inode number has
/// another id. Because `x` and `z` are not digits, no id is part of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectId(pub Handle);

/// The error for a text that is not the id of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "no id of an object: expected x, pairs of hexadecimal digits, and z, as `comity id` prints"
)]
pub struct NoObjectId;

impl ObjectId {
    /// Appends the text of the id. It does not use a formatter, because each new decision writes
    /// the ids of all directories above the object.
    pub(crate) fn append_to(&self, text: &mut String) {
        let digit = |value: u8| char::from(if value < 10 { b'0' + value } else { b'W' + value });
        text.reserve(2 * HANDLE_BYTES_MAX + 2);
        text.push('x');
        for byte in self.0.bytes() {
            text.push(digit(byte >> 4));
            text.push(digit(byte & 15));
        }
        text.push('z');
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.append_to(&mut text);
        f.write_str(&text)
    }
}

impl FromStr for ObjectId {
    type Err = NoObjectId;

    fn from_str(text: &str) -> Result<Self, NoObjectId> {
        let digits = text.strip_prefix('x').and_then(|text| text.strip_suffix('z'));
        let digits = digits.ok_or(NoObjectId)?.as_bytes();
        let (pairs, []) = digits.as_chunks::<2>() else { return Err(NoObjectId) };
        if pairs.len() > HANDLE_BYTES_MAX {
            return Err(NoObjectId);
        }
        let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
        Handle::new(&bytes.ok_or(NoObjectId)?).map(Self).map_err(|_| NoObjectId)
    }
}

/// The byte for a pair of lowercase hexadecimal digits.
fn byte(pair: &[u8; 2]) -> Option<u8> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    Some(digit(pair[0])? << 4 | digit(pair[1])?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_is_read_back(bytes in proptest::collection::vec(any::<u8>(), 1..40)) {
            let id = ObjectId(Handle::new(&bytes).unwrap());
            prop_assert_eq!(id.to_string().parse(), Ok(id));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "x?[0-9a-fA-Fz]{0,9}z?") {
            if let Ok(id) = text.parse::<ObjectId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn no_id_is_part_of_another() {
        let id = |bytes: &[u8]| ObjectId(Handle::new(bytes).unwrap()).to_string();
        assert!(!id(&[1, 2, 3]).contains(&id(&[1, 2])));
        assert!(!id(&[1, 2, 3]).contains(&id(&[2, 3])));
    }

    #[test]
    fn text_that_is_not_an_id_is_refused() {
        let long = format!("x{}z", "00".repeat(10_000));
        for text in ["", "x", "z", "xz", "x0z", "x0gz", "x00", "00z", "X00z", "x0Az", &long] {
            assert_eq!(text.parse::<ObjectId>(), Err(NoObjectId), "{text:.20}");
        }
    }
}
