//! The buffer and the result of a read.

use std::fs::File;
use std::sync::Arc;

use crate::{Attr, IdDomain};

/// The buffer that a read puts its data into.
#[derive(Debug)]
pub struct ReadInto<'a> {
    /// The buffer to which data is appended.
    pub bytes: &'a mut Vec<u8>,
    /// Reads of this many bytes or more may be answered as [`Data::File`].
    pub by_reference_from: u32,
    /// True if the caller's rights were checked when it opened the file for reading. They are not
    /// checked again, and attributes need not be returned.
    pub opened: bool,
}

impl<'a> ReadInto<'a> {
    /// Appends to `bytes` for a caller whose rights are checked now.
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
    /// True if the data reaches the end of the file.
    pub eof: bool,
    /// The file's attributes; they may be missing if [`ReadInto::opened`] was set.
    pub attr: Option<Attr<S>>,
}

/// Data of a read.
#[derive(Debug, Clone)]
pub enum Data {
    /// This many bytes were appended to [`ReadInto::bytes`].
    Appended(u32),
    /// The data is in a file, from which the server sends it without copying.
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
