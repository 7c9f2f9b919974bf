use std::ffi::CStr;

use comity_vfs::Name;
use comity_vfs::limits::NAME_BYTES_MAX;

/// A name with a terminating zero for the kernel, without an allocation.
pub(crate) struct ZeroName {
    bytes: [u8; NAME_BYTES_MAX + 1],
    length: usize,
}

impl ZeroName {
    /// Copies a name; a [`Name`] has no zero in it and is at most [`NAME_BYTES_MAX`] long.
    pub(crate) fn new(name: Name<'_>) -> Self {
        let mut bytes = [0; NAME_BYTES_MAX + 1];
        let length = name.bytes().len().min(NAME_BYTES_MAX);
        bytes[..length].copy_from_slice(&name.bytes()[..length]);
        Self { bytes, length }
    }

    /// Returns the name with its terminating zero.
    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_with_nul(&self.bytes[..=self.length]).unwrap_or_default()
    }
}
