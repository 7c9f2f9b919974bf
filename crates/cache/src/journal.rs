//! The journal: written data on the cache disk that survives a crash, see docs/formats.md,
//! "Journal".

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use comity_vfs::{Cred, Disk, Gid, Handle, Uid};
use xxhash_rust::xxh3::xxh3_64;

use crate::dirty::Extents;
use crate::key::FileName;
use crate::limits::{JOURNAL_BYTES_MAX, RECORD_BYTES_MAX};
use crate::medium::Medium;

/// The path of the journal on a medium.
pub(crate) const PATH: &str = "journal";
const MAGIC: [u8; 4] = *b"cmjr";
const HEADER_BYTES: usize = 72;
const CHECKSUM_AT: usize = 64;
const DATA: u32 = 1;
const DONE: u32 = 2;

/// Most bytes of data in one record: there is room for a handle beside them.
const PIECE_BYTES_MAX: usize = (RECORD_BYTES_MAX / 2) as usize;

/// The journal of a cache.
pub(crate) struct Journal {
    medium: Arc<dyn Medium>,
    state: Mutex<JournalState>,
    stable: Mutex<Stable>,
}

/// The part of the journal that is on stable storage.
#[derive(Debug, Default)]
struct Stable {
    /// The number of the last stable record.
    upto: u64,
    /// True after a failed fsync(2): a later one that succeeds says nothing about the earlier data.
    failed: bool,
}

#[derive(Debug, Default)]
struct JournalState {
    end: u64,
    next: u64,
    /// For each file with unsent data, the number of its last data record.
    undone: HashMap<FileName, u64>,
}

/// A record of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
struct JournalRecord {
    kind: u32,
    number: u64,
    file: FileName,
    change: u64,
    /// The offset of the data; in a DONE record, the number of the last record that is done.
    at: u64,
    ids: (u32, u32),
    data: Vec<u8>,
}

/// Unsent data of a file that a crash left in the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Left {
    /// The file.
    pub(crate) file: FileName,
    /// The change attribute of the version that the data was written over.
    pub(crate) change: u64,
    /// The last writer.
    pub(crate) cred: Cred<Disk>,
    /// The data.
    pub(crate) extents: Extents,
}

impl Journal {
    /// Opens the journal of a medium; returns it with the unsent data in it.
    ///
    /// # Errors
    /// Those of the disk.
    pub(crate) fn open(medium: Arc<dyn Medium>) -> io::Result<(Self, Vec<Left>)> {
        let (records, end) = read_all(medium.as_ref())?;
        // A record after a torn one would be taken up after a later crash.
        if medium.length(PATH)? > end {
            medium.truncate(PATH, end)?;
        }
        let next = records.last().map_or(1, |record| record.number + 1);
        let left = left_of(records);
        let undone = left.iter().map(|left| (left.file, next - 1)).collect();
        let state = Mutex::new(JournalState { end, next, undone });
        Ok((Self { medium, state, stable: Mutex::default() }, left))
    }

    /// Writes data to stable storage; returns the number of its record.
    ///
    /// # Errors
    /// Those of the disk, or a full journal: the write must not be answered from the journal.
    pub(crate) fn append(
        &self,
        (file, change): (FileName, u64),
        cred: &Cred<Disk>,
        offset: u64,
        data: &[u8],
    ) -> io::Result<u64> {
        let number = self.append_unstable((file, change), cred, offset, data)?;
        self.make_stable(number)?;
        Ok(number)
    }

    fn append_unstable(
        &self,
        (file, change): (FileName, u64),
        cred: &Cred<Disk>,
        offset: u64,
        data: &[u8],
    ) -> io::Result<u64> {
        let mut state = self.lock();
        if state.end + data.len() as u64 > JOURNAL_BYTES_MAX {
            return Err(io::ErrorKind::StorageFull.into());
        }
        let (end, next) = (state.end, state.next);
        let ids = (cred.uid.number(), cred.gid.number());
        let written = pieces(offset, data).try_for_each(|(at, data)| {
            let (number, data) = (state.next, data.to_vec());
            let record = JournalRecord { kind: DATA, number, file, change, at, ids, data };
            self.write(&mut state, &record)
        });
        if let Err(error) = written {
            // The write is not answered, so none of its records may be recovered.
            (state.end, state.next) = (end, next);
            self.medium.truncate(PATH, end)?;
            return Err(error);
        }
        let number = state.next - 1;
        // An entry here prevents the journal from being emptied.
        state.undone.insert(file, number);
        Ok(number)
    }

    /// Makes all records up to one stable, together with those written meanwhile. The journal's
    /// state is not locked during fsync(2).
    fn make_stable(&self, number: u64) -> io::Result<()> {
        let mut stable = self.stable.lock().unwrap_or_else(PoisonError::into_inner);
        if stable.upto >= number {
            return Ok(());
        }
        if stable.failed {
            return Err(io::Error::other("the disk failed to keep it before"));
        }
        let last = self.lock().next - 1;
        let synced = self.medium.sync(PATH);
        stable.failed = synced.is_err();
        synced.map(|()| stable.upto = last)
    }

    /// Notes that the file system below has the data of a file up to a record on stable storage.
    ///
    /// # Errors
    /// Those of the disk. After a crash the data would be compared or written again.
    pub(crate) fn done(&self, file: FileName, upto: u64, change: u64) -> io::Result<()> {
        let mut state = self.lock();
        if state.undone.get(&file).is_none_or(|last| *last > upto) {
            let (number, data) = (state.next, Vec::new());
            let record =
                JournalRecord { kind: DONE, number, file, change, at: upto, ids: (0, 0), data };
            return self.write(&mut state, &record);
        }
        state.undone.remove(&file);
        if state.undone.is_empty() {
            state.end = 0;
            return self.medium.truncate(PATH, 0);
        }
        let (number, data) = (state.next, Vec::new());
        let record =
            JournalRecord { kind: DONE, number, file, change, at: upto, ids: (0, 0), data };
        self.write(&mut state, &record)
    }

    fn write(&self, state: &mut JournalState, record: &JournalRecord) -> io::Result<()> {
        let bytes = record.encode();
        self.medium.write(PATH, state.end, &bytes)?;
        state.end += bytes.len() as u64;
        state.next += 1;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, JournalState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Splits data into pieces of at most [`PIECE_BYTES_MAX`], one for each record.
fn pieces(offset: u64, data: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    let starts = (offset..).step_by(PIECE_BYTES_MAX);
    starts.zip(data.chunks(PIECE_BYTES_MAX))
}

/// Reads all records up to the first invalid one; also returns their end.
fn read_all(medium: &dyn Medium) -> io::Result<(Vec<JournalRecord>, u64)> {
    let (mut records, mut at) = (Vec::<JournalRecord>::new(), 0);
    loop {
        let mut header = [0; HEADER_BYTES];
        let read = medium.read(PATH, at, &mut header)?;
        let lengths = JournalRecord::lengths(&header).filter(|_| read == HEADER_BYTES);
        let Some(rest) = lengths else { break };
        let mut content = vec![0; rest];
        if medium.read(PATH, at + HEADER_BYTES as u64, &mut content)? < rest {
            break;
        }
        let Some(record) = JournalRecord::decode(&header, &content) else { break };
        if records.last().is_some_and(|last| last.number + 1 != record.number) {
            break;
        }
        at += (HEADER_BYTES + rest) as u64;
        records.push(record);
    }
    Ok((records, at))
}

/// The data that is not done, by file.
fn left_of(records: Vec<JournalRecord>) -> Vec<Left> {
    let mut files: BTreeMap<Vec<u8>, Vec<JournalRecord>> = BTreeMap::new();
    for record in records {
        let key = [&record.file.volume.to_le_bytes(), record.file.handle.bytes()].concat();
        let list = files.entry(key).or_default();
        match record.kind {
            DATA => list.push(record),
            _ => {
                list.retain(|data| data.number > record.at);
                // Later data was written over the version that this DONE record names.
                list.iter_mut().for_each(|data| data.change = record.change);
            }
        }
    }
    files.into_values().filter_map(|records| left_of_file(&records)).collect()
}

fn left_of_file(records: &[JournalRecord]) -> Option<Left> {
    let (first, last) = (records.first()?, records.last()?);
    let mut extents = Extents::default();
    records.iter().for_each(|record| extents.put(record.at, &record.data));
    let cred = Cred::new(Uid::new(last.ids.0), Gid::new(last.ids.1));
    Some(Left { file: first.file, change: first.change, cred, extents })
}

const fn padded(length: usize) -> usize {
    length.next_multiple_of(8)
}

impl JournalRecord {
    fn encode(&self) -> Vec<u8> {
        let handle = self.file.handle.bytes();
        let mut content = handle.to_vec();
        content.resize(padded(handle.len()), 0);
        content.extend_from_slice(&self.data);
        content.resize(padded(content.len()), 0);
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.kind.to_le_bytes());
        for word in [self.number, self.file.volume, self.change, self.at] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        for word in [self.data.len() as u32, handle.len() as u32, self.ids.0, self.ids.1] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&xxh3_64(&content).to_le_bytes());
        bytes.extend_from_slice(&xxh3_64(&bytes).to_le_bytes());
        bytes.extend_from_slice(&content);
        bytes
    }

    /// The length of the rest of a record; `None` if the header is invalid.
    fn lengths(header: &[u8; HEADER_BYTES]) -> Option<usize> {
        let (fields, checksum) = header.split_at_checked(CHECKSUM_AT)?;
        if xxh3_64(fields).to_le_bytes() != checksum || !fields.starts_with(&MAGIC) {
            return None;
        }
        let [data, handle, ..] = numbers(fields.get(40..56)?);
        let length = padded(data as usize) + padded(handle as usize);
        (length as u64 <= RECORD_BYTES_MAX).then_some(length)
    }

    fn decode(header: &[u8; HEADER_BYTES], content: &[u8]) -> Option<Self> {
        let [data_length, handle_length, uid, gid] = numbers(header.get(40..56)?);
        let [_, kind, ..] = numbers(header.get(..16)?);
        let words: Vec<u64> = header
            .get(8..64)?
            .as_chunks::<8>()
            .0
            .iter()
            .map(|word| u64::from_le_bytes(*word))
            .collect();
        let [number, volume, change, at, _, _, checksum] = words.try_into().ok()?;
        if xxh3_64(content) != checksum {
            return None;
        }
        let handle = Handle::new(content.get(..handle_length as usize)?).ok()?;
        let data = content.get(padded(handle_length as usize)..)?.get(..data_length as usize)?;
        let file = FileName { volume, handle };
        Some(Self { kind, number, file, change, at, ids: (uid, gid), data: data.to_vec() })
    }
}

/// Decodes four numbers; missing ones are 0.
fn numbers(bytes: &[u8]) -> [u32; 4] {
    let mut words = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word));
    std::array::from_fn(|_| words.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_medium::MemoryMedium;

    fn file(name: &[u8]) -> FileName {
        FileName { volume: 1, handle: Handle::new(name).unwrap() }
    }

    fn cred() -> Cred<Disk> {
        Cred::new(Uid::new(7), Gid::new(8))
    }

    fn open(medium: &Arc<MemoryMedium>) -> (Journal, Vec<Left>) {
        Journal::open(Arc::clone(medium) as Arc<dyn Medium>).unwrap()
    }

    fn data(left: &Left) -> Vec<(u64, Vec<u8>)> {
        left.extents.iter().map(|(at, data)| (at, data.to_vec())).collect()
    }

    #[test]
    fn data_that_is_not_done_is_recovered() {
        let medium = Arc::new(MemoryMedium::default());
        let (journal, left) = open(&medium);
        assert!(left.is_empty());
        let first = journal.append((file(b"a"), 5), &cred(), 100, b"one").unwrap();
        journal.append((file(b"b"), 6), &cred(), 0, b"other").unwrap();
        journal.append((file(b"a"), 5), &cred(), 103, b" two").unwrap();
        journal.done(file(b"a"), first, 9).unwrap();
        let (journal, left) = open(&medium);
        assert_eq!(left.len(), 2);
        assert_eq!((left[0].change, data(&left[0])), (9, vec![(103, b" two".to_vec())]));
        assert_eq!((left[1].cred.clone(), left[1].change), (cred(), 6));
        journal.done(file(b"a"), 100, 10).unwrap();
        journal.done(file(b"b"), 100, 10).unwrap();
        assert!(open(&medium).1.is_empty());
        assert_eq!(medium.used(PATH).unwrap(), 0);
    }

    #[test]
    fn a_crash_loses_no_appended_data() {
        for seed in 0..200 {
            let medium = Arc::new(MemoryMedium::default());
            let (journal, _) = open(&medium);
            for number in 0..5_u8 {
                let at = u64::from(number) * 1_000;
                journal.append((file(b"a"), 1), &cred(), at, &[number + 1; 900]).unwrap();
            }
            medium.crash(seed);
            let (_, left) = open(&medium);
            let pieces = data(&left[0]);
            assert_eq!(pieces.len(), 5, "seed {seed}");
            assert!(pieces.iter().all(|(at, data)| data[..] == [(at / 1_000) as u8 + 1; 900]));
        }
    }

    #[test]
    fn a_damaged_record_ends_the_journal() {
        let medium = Arc::new(MemoryMedium::default());
        let (journal, _) = open(&medium);
        journal.append((file(b"a"), 1), &cred(), 0, b"one").unwrap();
        let end = medium.used(PATH).unwrap();
        journal.append((file(b"a"), 1), &cred(), 50, b"two").unwrap();
        medium.write(PATH, end + 80, &[0xff]).unwrap();
        assert_eq!(data(&open(&medium).1[0]), [(0, b"one".to_vec())]);
        medium.write(PATH, 8, &[0xff]).unwrap();
        assert!(open(&medium).1.is_empty());
    }

    /// After the first crash the record was torn, and another one has come to its place.
    #[test]
    fn no_record_behind_a_torn_one_is_recovered_after_a_later_crash() {
        let medium = Arc::new(MemoryMedium::default());
        let (journal, _) = open(&medium);
        for at in [0, 100, 200] {
            journal.append((file(b"a"), 1), &cred(), at, b"old").unwrap();
        }
        let record = medium.used(PATH).unwrap() / 3;
        medium.write(PATH, record + 80, &[0xff]).unwrap();
        let (journal, left) = open(&medium);
        assert_eq!(data(&left[0]), [(0, b"old".to_vec())]);
        journal.append((file(b"a"), 1), &cred(), 300, b"new").unwrap();
        assert_eq!(data(&open(&medium).1[0]), [(0, b"old".to_vec()), (300, b"new".to_vec())]);
    }
}
