use std::fmt;
use std::hash::{Hash, Hasher};

use crate::limits::HANDLE_BYTES_MAX;
use crate::{Result, Status};

/// What a backend calls one of its objects: opaque bytes, kept inline, valid as long as the object
/// lives, over renames and restarts. It has not been checked against any export.
#[derive(Clone, Copy)]
pub struct Handle {
    length: u8,
    bytes: [u8; HANDLE_BYTES_MAX],
}

impl Handle {
    /// Takes the backend's bytes.
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

    /// The backend's bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl PartialEq for Handle {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Handle {}

impl Hash for Handle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle(")?;
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}
