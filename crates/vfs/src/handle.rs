use std::fmt;
use std::hash::{Hash, Hasher};

use crate::limits::HANDLE_BYTES_MAX;
use crate::{Result, Status};

/// A backend's handle of one of its objects: opaque bytes, kept inline, valid as long as the object
/// lives, over renames and restarts. It has not been checked against any export. A file system that
/// names its objects by more bytes has a [`crate::HandleTable`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    length: u8,
    /// The handle's bytes, padded with zeros so that copies and comparisons have a fixed length.
    bytes: [u8; HANDLE_BYTES_MAX],
}

impl Handle {
    /// Makes a handle of the backend's bytes.
    ///
    /// # Errors
    /// [`Status::BadHandle`] if there are none or more than [`HANDLE_BYTES_MAX`].
    pub fn new(bytes: &[u8]) -> Result<Self> {
        let mut handle = Self { length: bytes.len() as u8, bytes: [0; HANDLE_BYTES_MAX] };
        match handle.bytes.get_mut(..bytes.len()) {
            Some(place) if !bytes.is_empty() => place.copy_from_slice(bytes),
            _ => return Err(Status::BadHandle),
        }
        Ok(handle)
    }

    /// Makes a handle of the first `length` of these bytes; the rest are zeros.
    ///
    /// # Errors
    /// [`Status::BadHandle`] if there are none or more than [`HANDLE_BYTES_MAX`].
    #[inline]
    pub fn from_padded(bytes: [u8; HANDLE_BYTES_MAX], length: usize) -> Result<Self> {
        debug_assert!(bytes.iter().skip(length).all(|byte| *byte == 0), "padded by zeros");
        match length {
            1..=HANDLE_BYTES_MAX => Ok(Self { length: length as u8, bytes }),
            _ => Err(Status::BadHandle),
        }
    }

    /// The backend's bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// The backend's bytes, padded with zeros, to be copied in one piece.
    #[must_use]
    #[inline]
    pub const fn padded(&self) -> &[u8; HANDLE_BYTES_MAX] {
        &self.bytes
    }
}

/// Hashes whole words, which is cheap: handles are looked up with every call.
impl Hash for Handle {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        let words = usize::from(self.length).div_ceil(8);
        state.write_u64(self.length.into());
        for word in self.bytes.as_chunks::<8>().0.iter().take(words) {
            state.write_u64(u64::from_le_bytes(*word));
        }
    }
}

const _: () = assert!(HANDLE_BYTES_MAX.is_multiple_of(8));

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle(")?;
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::hash_map::DefaultHasher;

    use super::*;

    #[test]
    fn handles_are_equal_that_have_the_same_bytes() {
        let handle = |bytes: &[u8]| Handle::new(bytes).unwrap();
        let hash = |handle: &Handle| {
            let mut hasher = DefaultHasher::new();
            handle.hash(&mut hasher);
            hasher.finish()
        };
        let (one, same) = (handle(b"one handle"), handle(b"one handle"));
        assert_eq!((one, hash(&one)), (same, hash(&same)));
        assert_eq!(Handle::from_padded(*one.padded(), 10), Ok(one));
        // Zeros at the end are part of a handle.
        for other in [&b"one handlf"[..], b"one handle\0", b"one handl", b"One handle"] {
            assert_ne!(one, handle(other));
            assert_ne!(hash(&one), hash(&handle(other)), "{other:?}");
        }
    }
}
