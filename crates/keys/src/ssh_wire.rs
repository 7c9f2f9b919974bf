//! The data types of SSH (RFC 4251, section 5): numbers, and strings that follow their lengths.

use zeroize::Zeroizing;

use crate::algorithm::Algorithm;
use crate::key_error::KeyError;
use crate::public_key::PublicKey;

/// The name of the curve in keys of OpenSSH (RFC 5656, section 10.1).
const CURVE: &[u8] = b"nistp256";

/// Bytes that are decoded from the beginning.
pub(crate) struct WireReader<'a> {
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        self.bytes(1)?.first().copied()
    }

    pub(crate) fn number(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub(crate) fn string(&mut self) -> Option<&'a [u8]> {
        let length = self.number()?;
        self.bytes(usize::try_from(length).ok()?)
    }

    /// Reads a non-negative number as 32 bytes, the highest first.
    pub(crate) fn number_of_32_bytes(&mut self) -> Option<Zeroizing<[u8; 32]>> {
        let digits = self.string()?;
        if digits.first().is_some_and(|first| first & 0x80 != 0) {
            return None;
        }
        let digits = digits.strip_prefix(&[0]).unwrap_or(digits);
        let mut padded = Zeroizing::new([0; 32]);
        padded.get_mut(32_usize.checked_sub(digits.len())?..)?.copy_from_slice(digits);
        Some(padded)
    }

    /// The bytes that have not been read.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads a public key after the name of its algorithm.
    pub(crate) fn point(&mut self, algorithm: Algorithm) -> Result<PublicKey, KeyError> {
        let wrong = KeyError::Malformed("the point of a public key");
        if algorithm == Algorithm::P256 && self.string() != Some(CURVE) {
            return Err(wrong);
        }
        PublicKey::from_raw(algorithm, self.string().ok_or(wrong)?)
    }
}

/// Appends a string to a message.
pub(crate) fn put_string(message: &mut Vec<u8>, string: &[u8]) {
    message.extend((string.len() as u32).to_be_bytes());
    message.extend(string);
}

impl PublicKey {
    /// The key in the encoding of SSH (RFC 4253, section 6.6).
    pub(crate) fn to_ssh_wire(self) -> Vec<u8> {
        let mut wire = Vec::new();
        put_string(&mut wire, self.algorithm().openssh_name().as_bytes());
        if self.algorithm() == Algorithm::P256 {
            put_string(&mut wire, CURVE);
        }
        put_string(&mut wire, self.as_bytes());
        wire
    }

    /// Reads the encoding that [`PublicKey::to_ssh_wire`] writes.
    pub(crate) fn from_ssh_wire(wire: &[u8]) -> Result<Self, KeyError> {
        let mut reader = WireReader::new(wire);
        let name = reader.string().ok_or(KeyError::Malformed("the name of an algorithm"))?;
        let algorithm = Algorithm::from_openssh_name(name)
            .ok_or_else(|| KeyError::unsupported(&String::from_utf8_lossy(name)))?;
        let key = reader.point(algorithm)?;
        match reader.rest() {
            [] => Ok(key),
            _ => Err(KeyError::Malformed("no bytes behind the public key")),
        }
    }
}
