//! Owners and groups as text: decimal numbers (RFC 8881, 5.9: allowed where client and server share
//! them, as with AUTH_SYS).

use comity_proto::nfs4::Nfsstat4;
use comity_xdr::Encoder;

/// Appends a number as text.
pub(super) fn say(reply: &mut Encoder, number: u32) {
    let mut digits = [0; 10];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        if let Some(place) = digits.get_mut(at) {
            *place = b'0' + (rest % 10) as u8;
        }
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    reply.opaque(digits.get(at..).unwrap_or_default());
}

/// The number a text is. To a file system, the largest says "nobody", so no client may mean a user
/// by it.
///
/// # Errors
/// [`Nfsstat4::BadOwner`] for every other text.
pub(super) fn number(text: &[u8]) -> Result<u32, Nfsstat4> {
    let is_plain = text == b"0" || text.first().is_some_and(|first| (b'1'..=b'9').contains(first));
    let number = std::str::from_utf8(text).ok().filter(|_| is_plain);
    let number = number.and_then(|text| text.parse().ok()).filter(|number| *number != u32::MAX);
    match number {
        Some(number) => Ok(number),
        None if text.is_empty() => Err(Nfsstat4::Inval),
        None => Err(Nfsstat4::BadOwner),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_said_and_read_in_one_way_only() {
        for value in [0, 7, 10, 1000, u32::MAX - 1] {
            let mut encoder = Encoder::new();
            say(&mut encoder, value);
            let text = value.to_string();
            assert_eq!(&encoder.bytes()[4..4 + text.len()], text.as_bytes());
            assert_eq!(number(text.as_bytes()), Ok(value));
        }
        for text in ["01", "+1", "-1", "4294967295", "4294967296", "root@example.org", "1 "] {
            assert_eq!(number(text.as_bytes()), Err(Nfsstat4::BadOwner), "{text}");
        }
    }
}
