use std::fmt;
use std::hash::{Hash, Hasher};

use comity_vfs::limits::LONG_HANDLE_BYTES_MAX;

/// The handle by which a server names an object (`nfs_fh3`, `nfs_fh4`), stored inline.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct ServerHandle {
    length: u8,
    /// The handle's bytes, followed by zeros.
    bytes: [u8; LONG_HANDLE_BYTES_MAX],
}

impl ServerHandle {
    /// Makes a handle; `None` if it is longer than the protocols allow.
    pub(crate) fn new(bytes: &[u8]) -> Option<Self> {
        let length = u8::try_from(bytes.len()).ok()?;
        let mut handle = Self { length, bytes: [0; LONG_HANDLE_BYTES_MAX] };
        handle.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(handle)
    }

    /// The server's bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl Hash for ServerHandle {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("file handle ")?;
        self.bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_have_up_to_128_bytes() {
        for length in [1, 64, 128] {
            let bytes = vec![7; length];
            assert_eq!(ServerHandle::new(&bytes).unwrap().bytes(), bytes);
        }
        assert_eq!(ServerHandle::new(&[7; 129]), None);
        assert_eq!(ServerHandle::new(&[7; 300]), None);
        assert_ne!(ServerHandle::new(&[7]), ServerHandle::new(&[7, 0]));
    }
}
