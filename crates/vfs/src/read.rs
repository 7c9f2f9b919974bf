//! The buffer and the result of a read.

use std::fs::File;
use std::sync::Arc;

use crate::{Attr, IdDomain};

/// The buffer that a read puts its data into.
#[derive(Debug)]
pub struct ReadInto<'a> {
    /// Data is appended here ...
    pub bytes: &'a mut Vec<u8>,
    /// ... or, from this many bytes on, may be answered as [`Data::File`].
    pub by_reference_from: u32,
    /// The caller was let in when it opened the file for reading: it is not judged again, and need
    /// not be told attributes.
    pub opened: bool,
}

impl<'a> ReadInto<'a> {
    /// Appends to `bytes` for one who is judged now.
    #[must_use]
    pub const fn new(bytes: &'a mut Vec<u8>) -> Self {
        Self { bytes, by_reference_from: u32::MAX, opened: false }
    }
}

/// The result of a read.
#[derive(Debug, Clone)]
pub struct Read<S: IdDomain> {
    /// The data.
    pub data: Data,
    /// True if the file ends with it.
    pub eof: bool,
    /// The file's attributes; perhaps none where it was [`ReadInto::opened`].
    pub attr: Option<Attr<S>>,
}

/// Data of a read.
#[derive(Debug, Clone)]
pub enum Data {
    /// This many bytes were appended to [`ReadInto::bytes`].
    Appended(u32),
    /// It stands in a file, for the shell to send without copying.
    File {
        /// The file.
        file: Arc<File>,
        /// The offset in the file, in bytes.
        offset: u64,
        /// The count of bytes.
        length: u32,
    },
}

impl Data {
    /// The count of bytes.
    #[must_use]
    pub const fn length(&self) -> u32 {
        match self {
            Self::Appended(length) | Self::File { length, .. } => *length,
        }
    }
}
