//! The wire format: a record mark as in RPC, an xid, then fields at fixed offsets.

/// Length of a request in bytes, its record mark included; data follows.
pub(crate) const REQUEST_BYTES: usize = 100;
/// Length of a reply in bytes, its record mark included; data follows.
pub(crate) const REPLY_BYTES: usize = 150;
/// Offset and longest length of the name in a request.
pub(crate) const NAME_AT: usize = 32;
const NAME_BYTES_MAX: usize = REQUEST_BYTES - NAME_AT - 1;

/// The operation that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Null,
    /// `fstat` of a small file.
    Stat,
    /// `fstatat` by name, and the handle of the object.
    Find,
    Read,
    Write,
    /// `pwrite` and `fdatasync`.
    WriteSync,
    Create,
    /// `getdents`, and `fstatat` of [`Request::count`] entries.
    List,
    /// `getdents`, then `fstatat` and the handle of [`Request::count`] entries.
    ListHandles,
    /// `fstatat` of an object that is not open.
    Reach,
    /// `openat` of a small file for reading and writing.
    Open,
    /// `close` of an open small file.
    Close,
    /// `F_OFD_SETLK` of a byte of a small file.
    Lock,
    /// `F_OFD_SETLK` that unlocks the byte.
    Unlock,
}

const VERBS: [Verb; 14] = [
    Verb::Null,
    Verb::Stat,
    Verb::Find,
    Verb::Read,
    Verb::Write,
    Verb::WriteSync,
    Verb::Create,
    Verb::List,
    Verb::ListHandles,
    Verb::Reach,
    Verb::Open,
    Verb::Close,
    Verb::Lock,
    Verb::Unlock,
];

/// A request, its data left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request<'a> {
    pub(crate) verb: Verb,
    /// The number of a file.
    pub(crate) file: u32,
    pub(crate) offset: u64,
    /// The number of bytes or entries.
    pub(crate) count: u32,
    /// A path below the top.
    pub(crate) name: &'a [u8],
}

impl<'a> Request<'a> {
    /// The request with its record mark, which counts `data` bytes after it.
    pub(crate) fn encode(&self, data: usize) -> Vec<u8> {
        let mut bytes = vec![0; REQUEST_BYTES];
        bytes[0..4].copy_from_slice(&mark(REQUEST_BYTES + data));
        let verb = VERBS.iter().position(|verb| *verb == self.verb).unwrap_or_default();
        bytes[8..12].copy_from_slice(&(verb as u32).to_be_bytes());
        bytes[12..16].copy_from_slice(&self.file.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.offset.to_be_bytes());
        bytes[24..28].copy_from_slice(&self.count.to_be_bytes());
        let name = &self.name[..self.name.len().min(NAME_BYTES_MAX)];
        bytes[28..32].copy_from_slice(&(name.len() as u32).to_be_bytes());
        bytes[NAME_AT..NAME_AT + name.len()].copy_from_slice(name);
        bytes
    }

    /// Reads the bytes after the record mark; `None` if they are no request.
    pub(crate) fn parse(record: &'a [u8]) -> Option<Self> {
        let length = word(record, 24)? as usize;
        let high = u64::from(word(record, 12)?);
        Some(Self {
            verb: *VERBS.get(word(record, 4)? as usize)?,
            file: word(record, 8)?,
            offset: high << 32 | u64::from(word(record, 16)?),
            count: word(record, 20)?,
            name: record.get(NAME_AT - 4..)?.get(..length)?,
        })
    }
}

/// The mark of a record of `bytes` bytes, the mark itself among them.
pub(crate) fn mark(bytes: usize) -> [u8; 4] {
    (1 << 31 | (bytes - 4) as u32).to_be_bytes()
}

/// The big-endian number at a place.
pub(crate) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.first_chunk().map(|word| u32::from_be_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_survives_the_way() {
        for verb in VERBS {
            let request =
                Request { verb, file: 3, offset: 5 << 40 | 7, count: 9, name: b"data/read" };
            let bytes = request.encode(4096);
            assert_eq!(bytes.len(), REQUEST_BYTES);
            assert_eq!(word(&bytes, 0), Some(1 << 31 | (REQUEST_BYTES + 4096 - 4) as u32));
            assert_eq!(Request::parse(&bytes[4..]), Some(request));
        }
    }
}
