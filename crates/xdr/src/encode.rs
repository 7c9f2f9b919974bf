use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::padding;

/// A value that can be written as XDR bytes.
pub trait Encode {
    /// Appends the value.
    fn encode(&self, encoder: &mut Encoder);
}

/// Returns the bytes of one value.
#[must_use]
pub fn encoded<T: Encode + ?Sized>(value: &T) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.value(value);
    encoder.bytes
}

/// A range of a file that stands at one place of the encoded bytes without having been copied
/// there; the shell sends it with `sendfile`.
#[derive(Debug, Clone)]
pub struct FileSegment {
    /// The count of the encoder's own bytes that go out before it.
    pub after: usize,
    /// The file; kept open by this reference.
    pub file: Arc<File>,
    /// The offset in the file at which the range begins, in bytes.
    pub offset: u64,
    /// Its length in bytes; bytes beyond the end of the file are sent as zeros.
    pub length: u32,
}

impl FileSegment {
    /// Reads the range; bytes beyond the end of the file stay as they are.
    fn read(&self, mut into: &mut [u8]) -> io::Result<()> {
        let mut offset = self.offset;
        while !into.is_empty() {
            match self.file.read_at(into, offset) {
                Ok(0) => return Ok(()),
                Ok(count) => {
                    into = into.get_mut(count..).unwrap_or_default();
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Collects encoded values: one growing buffer, reused, plus [`FileSegment`]s between its bytes.
#[derive(Debug, Default)]
pub struct Encoder {
    bytes: Vec<u8>,
    files: Vec<FileSegment>,
}

/// A place in an encoder, to which it can be rolled back.
#[derive(Debug, Clone, Copy)]
pub struct Checkpoint {
    bytes: usize,
    files: usize,
}

impl Checkpoint {
    /// The encoder's own bytes from an earlier checkpoint to this one.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Self) -> usize {
        self.bytes - earlier.bytes
    }
}

/// Space for a value that is known only later; filled by [`Encoder::fill`].
#[derive(Debug)]
#[must_use]
pub struct Reserved {
    at: usize,
    length: usize,
}

/// A word of zeros whose value is known only later; see [`Encoder::set`].
#[derive(Debug)]
#[must_use]
pub struct Word {
    at: usize,
}

/// The open record mark of a record being written; closed by [`Encoder::end_record`].
#[derive(Debug)]
#[must_use]
pub struct RecordStart(Checkpoint);

impl RecordStart {
    /// The place just before the record mark, for taking the whole record back.
    #[must_use]
    pub const fn checkpoint(&self) -> Checkpoint {
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

    /// Appends words, all at once.
    #[inline]
    pub fn words<const N: usize>(&mut self, words: [u32; N]) {
        self.raw(words.map(u32::to_be_bytes).as_flattened());
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

    /// Appends a range of a file by reference; the caller writes length and padding.
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

    /// Returns all bytes as they will be on the wire; file segments are read.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn flattened(&self) -> io::Result<Vec<u8>> {
        let (mut flat, mut sent) = (Vec::new(), 0);
        for segment in &self.files {
            flat.extend_from_slice(self.bytes.get(sent..segment.after).unwrap_or_default());
            sent = segment.after;
            let start = flat.len();
            flat.resize(start + segment.length as usize, 0);
            segment.read(flat.get_mut(start..).unwrap_or_default())?;
        }
        flat.extend_from_slice(self.bytes.get(sent..).unwrap_or_default());
        Ok(flat)
    }

    /// The file segments so far, in order of their place.
    #[must_use]
    pub fn files(&self) -> &[FileSegment] {
        &self.files
    }

    /// Leaves a word of zeros to be set later: cheaper than [`Encoder::reserve`], for words that
    /// every reply has.
    #[inline]
    pub fn word(&mut self) -> Word {
        let at = self.bytes.len();
        self.raw(&[0; 4]);
        Word { at }
    }

    /// Appends a word, and after it leaves one as [`Encoder::word`] does.
    #[inline]
    pub fn word_behind(&mut self, before: u32) -> Word {
        let at = self.bytes.len() + 4;
        self.words([before, 0]);
        Word { at }
    }

    /// Returns the word that was appended last, so that it can be set again.
    pub fn last_word(&self) -> Word {
        Word { at: self.bytes.len().saturating_sub(4) }
    }

    /// Sets a word. A word that was rolled back meanwhile is left alone.
    #[inline]
    pub fn set(&mut self, word: Word, value: u32) {
        let place = self.bytes.get_mut(word.at..).and_then(|rest| rest.first_chunk_mut());
        place.into_iter().for_each(|place| *place = value.to_be_bytes());
    }

    /// Leaves `LENGTH` zero bytes to be filled later.
    #[inline]
    pub fn reserve<const LENGTH: usize>(&mut self) -> Reserved {
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; LENGTH]);
        Reserved { at, length: LENGTH }
    }

    /// Writes what was left open; `write` must produce exactly the reserved number of bytes.
    #[inline]
    pub fn fill(&mut self, reserved: Reserved, write: impl FnOnce(&mut Self)) {
        let end = self.bytes.len();
        write(self);
        debug_assert_eq!(self.bytes.len() - end, reserved.length, "reserved another length");
        self.bytes.copy_within(end.., reserved.at);
        self.bytes.truncate(end);
    }

    /// Returns this place, for [`Encoder::rollback`] and for measuring lengths.
    #[must_use]
    #[inline]
    pub const fn checkpoint(&self) -> Checkpoint {
        Checkpoint { bytes: self.bytes.len(), files: self.files.len() }
    }

    /// Forgets everything after `checkpoint`.
    pub fn rollback(&mut self, checkpoint: Checkpoint) {
        self.bytes.truncate(checkpoint.bytes);
        self.files.truncate(checkpoint.files);
    }

    /// Bytes from `checkpoint` to here as they will be on the wire, file segments among them.
    #[must_use]
    #[inline]
    pub fn length_since(&self, checkpoint: Checkpoint) -> usize {
        let own = self.bytes.len() - checkpoint.bytes;
        // Few replies have file segments.
        if self.files.len() == checkpoint.files { own } else { own + self.files_since(checkpoint) }
    }

    fn files_since(&self, checkpoint: Checkpoint) -> usize {
        let files = self.files.get(checkpoint.files..).unwrap_or_default();
        files.iter().map(|file| file.length as usize).sum()
    }

    /// The encoded bytes from `checkpoint` to here if no file segment is among them.
    #[must_use]
    #[inline]
    pub fn contiguous_since(&self, checkpoint: Checkpoint) -> Option<&[u8]> {
        if self.files.len() > checkpoint.files { None } else { self.bytes.get(checkpoint.bytes..) }
    }

    /// Opens a record of one fragment (RFC 5531, 11).
    #[inline]
    pub fn begin_record(&mut self) -> RecordStart {
        let checkpoint = self.checkpoint();
        self.raw(&[0; 4]);
        RecordStart(checkpoint)
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

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_word_is_set_where_it_stands_unless_it_was_taken_back() {
        let mut encoder = Encoder::new();
        encoder.words([1]);
        let word = encoder.word_behind(2);
        encoder.raw(b"more");
        encoder.set(word, 0x0304_0506);
        assert_eq!(encoder.bytes(), b"\0\0\0\x01\0\0\0\x02\x03\x04\x05\x06more");
        let begin = encoder.checkpoint();
        let word = encoder.word();
        encoder.rollback(begin);
        encoder.set(word, 7);
        assert_eq!(encoder.bytes(), b"\0\0\0\x01\0\0\0\x02\x03\x04\x05\x06more");
    }

    #[test]
    fn a_length_counts_the_files_behind_its_mark() {
        let mut encoder = Encoder::new();
        // Any file; nothing of it is read.
        let file = Arc::new(File::open("/dev/null").unwrap());
        encoder.file(Arc::clone(&file), 0, 100);
        let checkpoint = encoder.checkpoint();
        encoder.raw(&[0; 8]);
        assert_eq!(encoder.length_since(checkpoint), 8);
        encoder.file(file, 0, 1000);
        assert_eq!(encoder.length_since(checkpoint), 1008);
    }

    #[test]
    fn the_flattened_bytes_have_the_files_in_their_places() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0123").unwrap();
        let file = Arc::new(file);
        let mut encoder = Encoder::new();
        encoder.raw(b"head");
        encoder.file(Arc::clone(&file), 1, 2);
        encoder.raw(b"and ");
        encoder.file(file, 2, 4);
        assert_eq!(encoder.flattened().unwrap(), b"head12and 23\0\0");
    }
}
