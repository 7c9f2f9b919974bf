use std::fs::File;
use std::sync::Arc;

use crate::padding;

/// A value that can be written as XDR bytes.
pub trait Encode {
    /// Appends the value.
    fn encode(&self, encoder: &mut Encoder);
}

/// A stretch of a file that stands at one place of the encoded bytes without having been copied
/// there; the shell sends it with `sendfile`.
#[derive(Debug, Clone)]
pub struct FileSegment {
    /// How many of the encoder's own bytes go out before it.
    pub after: usize,
    /// The file; kept open by this reference.
    pub file: Arc<File>,
    /// Where in the file the stretch begins, in bytes.
    pub offset: u64,
    /// Its length in bytes; what the file turns out not to have is sent as zeros.
    pub length: u32,
}

/// Collects encoded values: one growing buffer, reused, plus [`FileSegment`]s between its bytes.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    files: Vec<FileSegment>,
}

/// A place in an encoder to come back to.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    bytes: usize,
    files: usize,
}

/// Space for a value that is known only later; filled by [`Encoder::fill`].
#[derive(Debug)]
#[must_use]
pub struct Reserved {
    at: usize,
    length: usize,
}

/// The open record mark of a record being written; closed by [`Encoder::end_record`].
#[derive(Debug)]
#[must_use]
pub struct RecordStart(Mark);

impl RecordStart {
    /// The place just before the record mark, for taking the whole record back.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        self.0
    }
}

impl Encoder {
    /// An empty encoder.
    #[must_use]
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), files: Vec::new() }
    }

    /// Appends a value.
    #[inline]
    pub fn value<T: Encode + ?Sized>(&mut self, value: &T) {
        value.encode(self);
    }

    /// Appends raw bytes, whose count must be a multiple of four or be padded by the caller.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends bytes and their padding, without a length (RFC 4506, 4.9).
    #[inline]
    pub fn fixed(&mut self, bytes: &[u8]) {
        self.raw(bytes);
        self.pad(bytes.len());
    }

    /// Appends length, bytes and padding (RFC 4506, 4.10).
    #[inline]
    pub fn opaque(&mut self, bytes: &[u8]) {
        self.value(&(bytes.len() as u32));
        self.fixed(bytes);
    }

    /// Appends the padding that follows `length` bytes.
    #[inline]
    pub fn pad(&mut self, length: usize) {
        match padding(length) {
            1 => self.raw(&[0]),
            2 => self.raw(&[0; 2]),
            3 => self.raw(&[0; 3]),
            _ => {}
        }
    }

    /// Appends a stretch of a file by reference; the caller writes length and padding.
    pub fn file(&mut self, file: Arc<File>, offset: u64, length: u32) {
        self.files.push(FileSegment { after: self.bytes.len(), file, offset, length });
    }

    /// The buffer itself, for data that is read straight into it.
    pub const fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// The bytes so far, file segments not among them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The file segments so far, in order of their place.
    #[must_use]
    pub fn files(&self) -> &[FileSegment] {
        &self.files
    }

    /// Leaves `length` zero bytes to be filled later.
    pub fn reserve(&mut self, length: usize) -> Reserved {
        let at = self.bytes.len();
        self.bytes.resize(at + length, 0);
        Reserved { at, length }
    }

    /// Writes what was left open; `write` must produce exactly the reserved number of bytes.
    pub fn fill(&mut self, reserved: Reserved, write: impl FnOnce(&mut Self)) {
        let end = self.bytes.len();
        write(self);
        debug_assert_eq!(self.bytes.len() - end, reserved.length, "reserved another length");
        self.bytes.copy_within(end.., reserved.at);
        self.bytes.truncate(end);
    }

    /// This place, to return to with [`Encoder::rollback`] or measure from.
    #[must_use]
    pub const fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), files: self.files.len() }
    }

    /// Forgets everything after `mark`.
    pub fn rollback(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.files.truncate(mark.files);
    }

    /// Bytes from `mark` to here as they will be on the wire, file segments among them.
    #[must_use]
    pub fn length_since(&self, mark: Mark) -> usize {
        let files = self.files.get(mark.files..).unwrap_or_default();
        self.bytes.len() - mark.bytes + files.iter().map(|f| f.length as usize).sum::<usize>()
    }

    /// The encoded bytes from `mark` to here if no file segment is among them.
    #[must_use]
    pub fn contiguous_since(&self, mark: Mark) -> Option<&[u8]> {
        if self.files.len() > mark.files { None } else { self.bytes.get(mark.bytes..) }
    }

    /// Opens a record of one fragment (RFC 5531, 11).
    pub fn begin_record(&mut self) -> RecordStart {
        let mark = self.mark();
        self.raw(&[0; 4]);
        RecordStart(mark)
    }

    /// Closes a record: its length is written in front of it.
    pub fn end_record(&mut self, start: RecordStart) {
        const LAST_FRAGMENT: u32 = 1 << 31;
        let length = self.length_since(start.0) - 4;
        let header = (LAST_FRAGMENT | length as u32).to_be_bytes();
        if let Some(place) = self.bytes.get_mut(start.0.bytes..start.0.bytes + 4) {
            place.copy_from_slice(&header);
        }
    }

    /// Empties it; the buffer is kept up to `keep` bytes of capacity.
    pub fn clear(&mut self, keep: usize) {
        self.bytes.clear();
        self.bytes.shrink_to(keep);
        self.files.clear();
    }
}
