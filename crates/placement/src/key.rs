//! The secret that a metadata server and its data servers share, and the handles of layouts.
//!
//! A handle of a layout has a version (1 byte), accesses (1), the fence (8, big endian), a MAC
//! (16), and the data server's own handle of the file, which that server's own key has sealed.

use std::fmt;
use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

/// The first byte of a handle of a layout. Handles of exports begin with another byte.
const VERSION: u8 = 3;

/// Bytes before the data server's own handle.
const HEADER_BYTES: usize = 26;

/// Prefix of the bytes for a handle's MAC, so that no record has the same MAC.
const OF_HANDLES: &[u8] = b"layout handle";

/// The secret of a placement.
#[derive(Clone, PartialEq, Eq)]
pub struct PlacementKey([u8; 16]);

/// The error of a text that is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyError;

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected 32 hexadecimal digits; `openssl rand -hex 16` makes a key")
    }
}

impl std::error::Error for KeyError {}

impl fmt::Debug for PlacementKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlacementKey")
    }
}

/// A handle of a layout whose seal was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutHandle<'h> {
    /// True if the layout allows writing.
    pub writes: bool,
    /// The fence of the file when the handle was sealed. A data server refuses the handle when the
    /// fence was raised since.
    pub fence: u64,
    /// The data server's own handle of the file, sealed by the data server.
    pub own: &'h [u8],
}

impl PlacementKey {
    /// Makes a key of 16 secret random bytes.
    #[must_use]
    pub const fn new(secret: [u8; 16]) -> Self {
        Self(secret)
    }

    /// Reads a key from the content of a file: 32 hexadecimal digits, with white space around them.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn parse(text: &[u8]) -> Result<Self, KeyError> {
        let text = std::str::from_utf8(text.trim_ascii()).map_err(|_| KeyError)?;
        if text.len() != 32 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(KeyError);
        }
        u128::from_str_radix(text, 16).map(|key| Self(key.to_be_bytes())).map_err(|_| KeyError)
    }

    /// Returns whether bytes from the wire begin like a handle of a layout.
    #[must_use]
    pub fn claims_layout(sealed: &[u8]) -> bool {
        sealed.first() == Some(&VERSION)
    }

    /// Makes the handle by which a client with a layout uses a file of a data server.
    #[must_use]
    pub fn seal(&self, handle: LayoutHandle<'_>) -> Box<[u8]> {
        let accesses = u8::from(handle.writes);
        let fence = handle.fence.to_be_bytes();
        let mac = self.mac(OF_HANDLES, &[&[accesses], &fence, handle.own]);
        [&[VERSION, accesses][..], &fence, &mac, handle.own].concat().into()
    }

    /// Checks the seal of a handle from the wire; returns `None` if this key did not seal it.
    #[must_use]
    pub fn open<'h>(&self, sealed: &'h [u8]) -> Option<LayoutHandle<'h>> {
        let (header, own) = sealed.split_first_chunk::<HEADER_BYTES>()?;
        let [VERSION, accesses, rest @ ..] = header else { return None };
        let (fence, mac) = rest.split_first_chunk::<8>()?;
        let mac = mac.first_chunk()?;
        let expected = self.mac(OF_HANDLES, &[&[*accesses], fence, own]);
        // A comparison of u128 takes the same time wherever the bytes differ.
        let genuine = u128::from_be_bytes(*mac) == u128::from_be_bytes(expected);
        let (writes, fence) = (*accesses == 1, u64::from_be_bytes(*fence));
        (genuine && *accesses <= 1).then_some(LayoutHandle { writes, fence, own })
    }

    /// Returns the MAC of parts; different purposes give different MACs.
    pub(crate) fn mac(&self, purpose: &[u8], parts: &[&[u8]]) -> [u8; 16] {
        let mut hasher = SipHasher24::new_with_key(&self.0);
        for part in std::iter::once(&purpose).chain(parts) {
            hasher.write(&(part.len() as u64).to_be_bytes());
            hasher.write(part);
        }
        hasher.finish128().as_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_32_hexadecimal_digits() {
        let text = "000102030405060708090a0b0c0d0e0F";
        let key = PlacementKey::new(std::array::from_fn(|at| at as u8));
        assert_eq!(PlacementKey::parse(format!(" {text}\n").as_bytes()), Ok(key));
        for wrong in ["", "+00102030405060708090a0b0c0d0e0f", &text[1..], &text.repeat(2)] {
            assert_eq!(PlacementKey::parse(wrong.as_bytes()), Err(KeyError), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn a_changed_handle_of_a_layout_does_not_open(
            own in proptest::collection::vec(any::<u8>(), 1..64),
            (writes, fence) in any::<(bool, u64)>(),
            flip in any::<(usize, u8)>(),
        ) {
            let key = PlacementKey::new([7; 16]);
            let handle = LayoutHandle { writes, fence, own: &own };
            let mut sealed = key.seal(handle);
            prop_assert_eq!(key.open(&sealed), Some(handle));
            prop_assert_eq!(PlacementKey::new([8; 16]).open(&sealed), None);
            let at = flip.0 % sealed.len();
            sealed[at] ^= flip.1 | 1;
            prop_assert_eq!(key.open(&sealed), None);
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            prop_assert_eq!(PlacementKey::new([7; 16]).open(&bytes), None);
        }
    }
}
