use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use hdrhistogram::Histogram;

use super::content::PIECE_BYTES_MAX;
use super::{
    Access, Content, Entry, FileId, Files, Interrupt, Latency, LockKind, Metadata, Range, Wait,
};

/// Kinds of operations, in the words of NFS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Kind {
    Open,
    Close,
    Create,
    Read,
    Write,
    Sync,
    Getattr,
    Lookup,
    List,
    Mkdir,
    Rmdir,
    Symlink,
    Readlink,
    Remove,
    Setattr,
    Lock,
    Unlock,
}

impl Kind {
    /// As it is written in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Open => "OPEN",
            Self::Close => "CLOSE",
            Self::Create => "CREATE",
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Sync => "SYNC",
            Self::Getattr => "GETATTR",
            Self::Lookup => "LOOKUP",
            Self::List => "LIST",
            Self::Mkdir => "MKDIR",
            Self::Rmdir => "RMDIR",
            Self::Symlink => "SYMLINK",
            Self::Readlink => "READLINK",
            Self::Remove => "REMOVE",
            Self::Setattr => "SETATTR",
            Self::Lock => "LOCK",
            Self::Unlock => "UNLOCK",
        }
    }
}

/// What one worker does to one target: times every operation, checks what it gives, and stops when
/// the run is interrupted. What the driver itself does is outside of the times.
pub struct Driver {
    files: Box<dyn Files>,
    content: Arc<Content>,
    interrupt: Interrupt,
    buffer: Vec<u8>,
    tally: Tally,
}

/// An open file of a driver.
#[derive(Debug, Clone)]
pub struct OpenFile {
    id: FileId,
    path: Arc<str>,
    salt: u64,
}

/// What a driver has done so far.
#[derive(Debug, Default)]
pub struct Tally {
    /// Time spent in operations.
    pub spent: Duration,
    /// Operations done.
    pub operations: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Latencies in nanoseconds by kind.
    pub latencies: BTreeMap<Kind, Histogram<u64>>,
}

impl Driver {
    /// One that works on `files`, which hold the content given.
    #[must_use]
    pub fn new(files: Box<dyn Files>, content: Arc<Content>, interrupt: Interrupt) -> Self {
        Self { files, content, interrupt, buffer: Vec::new(), tally: Tally::default() }
    }

    /// What it has done so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Gives what was done since the last time, and begins to count anew.
    pub fn take_tally(&mut self) -> Tally {
        std::mem::take(&mut self.tally)
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// The target says no, with what was asked of it; so for all that follow.
    pub fn make_directory(&mut self, path: &str) -> Result<()> {
        self.named(Kind::Mkdir, path, |files| files.make_directory(path))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// As above.
    pub fn remove_directory(&mut self, path: &str) -> Result<()> {
        self.named(Kind::Rmdir, path, |files| files.remove_directory(path))
    }

    /// Makes an empty file and opens it.
    ///
    /// # Errors
    /// As above.
    pub fn create(&mut self, path: &str) -> Result<OpenFile> {
        let id = self.named(Kind::Create, path, |files| files.create(path))?;
        Ok(OpenFile { id, path: path.into(), salt: Content::salt(path) })
    }

    /// Opens a file.
    ///
    /// # Errors
    /// As above.
    pub fn open(&mut self, path: &str, access: Access) -> Result<OpenFile> {
        let id = self.named(Kind::Open, path, |files| files.open(path, access))?;
        Ok(OpenFile { id, path: path.into(), salt: Content::salt(path) })
    }

    /// Closes a file.
    ///
    /// # Errors
    /// As above.
    pub fn close(&mut self, file: OpenFile) -> Result<()> {
        self.named(Kind::Close, &file.path, |files| files.close(file.id))
    }

    /// Reads `length` bytes of the file's [`Content`], and checks each of them.
    ///
    /// # Errors
    /// There are fewer, or others; or as above.
    pub fn read(&mut self, file: &OpenFile, offset: u64, length: usize) -> Result<()> {
        let content = Arc::clone(&self.content);
        self.fetch(file, offset, length)?;
        let wrong = content.first_wrong(file.salt, offset, &self.buffer[..length]);
        wrong.map_or(Ok(()), |byte| wrong_data(file, offset, byte))
    }

    /// Reads bytes that must be `wanted`; gives them back as they were read.
    ///
    /// # Errors
    /// There are fewer, or others; or as above.
    pub fn read_data(&mut self, file: &OpenFile, offset: u64, wanted: &[u8]) -> Result<&[u8]> {
        self.fetch(file, offset, wanted.len())?;
        let found = &self.buffer[..wanted.len()];
        if found != wanted {
            let same = found.iter().zip(wanted).take_while(|(found, wanted)| found == wanted);
            wrong_data(file, offset, offset + same.count() as u64)?;
        }
        Ok(found)
    }

    /// Reads so many bytes into the buffer.
    fn fetch(&mut self, file: &OpenFile, offset: u64, length: usize) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(buffer.len().max(length), 0);
        // What was read before might be right by chance, were nothing read now.
        buffer[..length].iter_mut().step_by(512).for_each(|byte| *byte = !*byte);
        let part = &mut buffer[..length];
        let read = self.timed(Kind::Read, |files| files.read(file.id, offset, part));
        self.buffer = buffer;
        let count = read?.with_context(|| at(Kind::Read, file, offset))?;
        self.tally.bytes_read += count as u64;
        let what = || at(Kind::Read, file, offset);
        ensure!(count == length, "{}: {count} of {length} bytes, all were written", what());
        Ok(())
    }

    /// Writes `length` bytes of the file's [`Content`].
    ///
    /// # Errors
    /// Not all are taken; or as above.
    pub fn write(&mut self, file: &OpenFile, offset: u64, length: usize) -> Result<()> {
        let content = Arc::clone(&self.content);
        let mut done = 0;
        while done < length {
            let place = offset + done as u64;
            let piece = content.piece(file.salt, place, (length - done).min(PIECE_BYTES_MAX));
            self.write_data(file, place, piece)?;
            done += piece.len();
        }
        Ok(())
    }

    /// Writes these bytes.
    ///
    /// # Errors
    /// Not all are taken; or as above.
    pub fn write_data(&mut self, file: &OpenFile, offset: u64, data: &[u8]) -> Result<()> {
        let mut done = 0;
        while done < data.len() {
            let (place, rest) = (offset + done as u64, &data[done..]);
            let taken = self.timed(Kind::Write, |files| files.write(file.id, place, rest))?;
            let taken = taken.with_context(|| at(Kind::Write, file, place))?;
            let what = || at(Kind::Write, file, place);
            let some = (1..=rest.len()).contains(&taken);
            ensure!(some, "{}: {taken} of {} bytes taken", what(), rest.len());
            done += taken;
        }
        self.tally.bytes_written += data.len() as u64;
        Ok(())
    }

    /// Does something that belongs to the work, but not to the figures.
    ///
    /// # Errors
    /// As `work`.
    pub fn untimed<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let kept = self.take_tally();
        let result = work(self);
        self.tally = kept;
        result
    }

    /// Puts a file on stable storage.
    ///
    /// # Errors
    /// As above.
    pub fn sync(&mut self, file: &OpenFile) -> Result<()> {
        self.named(Kind::Sync, &file.path, |files| files.sync(file.id))
    }

    /// Attributes of an open file.
    ///
    /// # Errors
    /// As above.
    pub fn attributes(&mut self, file: &OpenFile) -> Result<Metadata> {
        self.named(Kind::Getattr, &file.path, |files| files.attributes(file.id))
    }

    /// Attributes of a name.
    ///
    /// # Errors
    /// As above.
    pub fn lookup(&mut self, path: &str) -> Result<Metadata> {
        self.named(Kind::Lookup, path, |files| files.lookup(path))
    }

    /// The entries of a directory.
    ///
    /// # Errors
    /// As above.
    pub fn list(&mut self, path: &str, attributes: bool) -> Result<Vec<Entry>> {
        self.named(Kind::List, path, |files| files.list(path, attributes))
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// As above.
    pub fn make_link(&mut self, path: &str, to: &str) -> Result<()> {
        self.named(Kind::Symlink, path, |files| files.make_link(path, to))
    }

    /// Reads a symbolic link that must say `to`.
    ///
    /// # Errors
    /// It says something else; or as above.
    pub fn read_link(&mut self, path: &str, to: &str) -> Result<()> {
        let found = self.named(Kind::Readlink, path, |files| files.read_link(path))?;
        ensure!(found == to, "READLINK of {path}: wrong data, `{found}` instead of `{to}`");
        Ok(())
    }

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    /// As above.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        self.named(Kind::Remove, path, |files| files.remove(path))
    }

    /// Gives a file to a user and group.
    ///
    /// # Errors
    /// As above.
    pub fn set_owner(&mut self, path: &str, user: u32, group: u32) -> Result<()> {
        self.named(Kind::Setattr, path, |files| files.set_owner(path, user, group))
    }

    /// Takes or gives back a lock.
    ///
    /// # Errors
    /// As above.
    pub fn lock(
        &mut self,
        file: &OpenFile,
        kind: LockKind,
        range: Range,
        wait: Wait,
    ) -> Result<()> {
        let named = if kind == LockKind::Unlock { Kind::Unlock } else { Kind::Lock };
        self.named(named, &file.path, |files| files.lock(file.id, kind, range, wait))
    }

    /// Times an operation and says in an error what it was about.
    fn named<T>(
        &mut self,
        kind: Kind,
        path: &str,
        operation: impl FnOnce(&mut dyn Files) -> io::Result<T>,
    ) -> Result<T> {
        let result = self.timed(kind, operation)?;
        result.with_context(|| format!("{} of {path}", kind.name()))
    }

    /// Does an operation and keeps how long it took.
    fn timed<T>(
        &mut self,
        kind: Kind,
        operation: impl FnOnce(&mut dyn Files) -> io::Result<T>,
    ) -> Result<io::Result<T>> {
        self.interrupt.check()?;
        let start = Instant::now();
        let result = operation(self.files.as_mut());
        let took = start.elapsed();
        self.tally.record(kind, took);
        Ok(result)
    }
}

impl Tally {
    fn record(&mut self, kind: Kind, took: Duration) {
        self.spent += took;
        self.operations += 1;
        let histogram = self.latencies.entry(kind).or_insert_with(Latency::histogram);
        histogram.saturating_record(took.as_nanos() as u64);
    }

    /// How many operations of a kind there were.
    #[must_use]
    pub fn count(&self, kind: Kind) -> u64 {
        self.latencies.get(&kind).map_or(0, Histogram::len)
    }

    /// Adds what another worker did at the same time: work adds up, time is the longer one.
    pub fn merge(&mut self, other: Self) {
        self.spent = self.spent.max(other.spent);
        self.operations += other.operations;
        self.bytes_read += other.bytes_read;
        self.bytes_written += other.bytes_written;
        for (kind, histogram) in other.latencies {
            let mine = self.latencies.entry(kind).or_insert_with(Latency::histogram);
            // All have the same bounds: nothing is out of them.
            let _ = mine.add(&histogram);
        }
    }
}

fn wrong_data(file: &OpenFile, offset: u64, byte: u64) -> Result<()> {
    let what = at(Kind::Read, file, offset);
    bail!("{what}: wrong data, byte {byte} of the file is not what was written")
}

fn at(kind: Kind, file: &OpenFile, offset: u64) -> String {
    format!("{} of {} at {offset}", kind.name(), file.path)
}
