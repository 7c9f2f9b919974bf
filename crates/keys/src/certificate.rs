//! The public key of a certificate (RFC 5280, section 4.1). Everything else is ignored.

use crate::key_error::KeyError;
use crate::limits::FILE_BYTES_MAX;
use crate::public_key::PublicKey;

const INTEGER: u8 = 0x02;
const SEQUENCE: u8 = 0x30;
const VERSION: u8 = 0xa0;

impl PublicKey {
    /// The public key in a certificate in DER. The validity and the signer of the certificate are
    /// not checked.
    ///
    /// # Errors
    /// Bytes that are not a certificate, or a key that [`PublicKey::from_spki`] refuses.
    pub fn from_certificate(der: &[u8]) -> Result<Self, KeyError> {
        if der.len() > FILE_BYTES_MAX {
            return Err(KeyError::TooLong);
        }
        let key = key_info(der).ok_or(KeyError::Malformed("a certificate"))?;
        Self::from_spki(key)
    }
}

/// The SubjectPublicKeyInfo of a certificate.
fn key_info(der: &[u8]) -> Option<&[u8]> {
    let certificate = Element::only(der, SEQUENCE)?;
    let (signed, _) = Element::first(certificate.content)?;
    let mut rest = signed.tagged(SEQUENCE)?.content;
    let (first, after_version) = Element::first(rest)?;
    if first.tag == VERSION {
        rest = after_version;
    }
    // Skip serial number, signature algorithm, issuer, validity and subject.
    for tag in [INTEGER, SEQUENCE, SEQUENCE, SEQUENCE, SEQUENCE] {
        let (element, after) = Element::first(rest)?;
        element.tagged(tag)?;
        rest = after;
    }
    let (key, _) = Element::first(rest)?;
    Some(key.tagged(SEQUENCE)?.whole)
}

/// A tag, a length, and the content (X.690, section 8.1).
struct Element<'a> {
    tag: u8,
    whole: &'a [u8],
    content: &'a [u8],
}

impl<'a> Element<'a> {
    /// The first element of some bytes, and the bytes after it.
    fn first(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (tag, rest) = bytes.split_first()?;
        let (length, rest) = rest.split_first()?;
        let (length, rest) = match length {
            0..=0x7f => (usize::from(*length), rest),
            0x81..=0x83 => {
                let (digits, rest) = rest.split_at_checked(usize::from(length & 3))?;
                (digits.iter().fold(0, |all, digit| all << 8 | usize::from(*digit)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        let whole = bytes.get(..bytes.len() - rest.len())?;
        Some((Self { tag: *tag, whole, content }, rest))
    }

    /// The element, if it takes all the bytes.
    fn only(bytes: &'a [u8], tag: u8) -> Option<Self> {
        let (element, rest) = Self::first(bytes)?;
        if rest.is_empty() { element.tagged(tag) } else { None }
    }

    fn tagged(self, tag: u8) -> Option<Self> {
        (self.tag == tag).then_some(self)
    }
}
