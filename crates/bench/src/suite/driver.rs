use std::io;
use std::mem;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail, ensure};

use super::content::PIECE_BYTES_MAX;
use super::stopwatch::Stopwatch;
use super::{
    Access, Content, Entry, FileId, Files, Interrupt, Kind, LockKind, Metadata, Range, Tally, Wait,
};

/// The driver of one worker at one target: it times every operation, checks the result, and stops
/// when the run is interrupted. The times do not include the driver's own work.
pub struct Driver {
    files: Box<dyn Files>,
    content: Arc<Content>,
    interrupt: Interrupt,
    buffer: Vec<u8>,
    stopwatch: Stopwatch,
    tally: Tally,
    /// The tally of operations that count for no figure. It is reused, because allocating one takes
    /// longer than most operations.
    unheeded: Tally,
}

/// An open file of a driver.
#[derive(Debug, Clone)]
pub struct OpenFile {
    id: FileId,
    path: Arc<str>,
    salt: u64,
}

impl Driver {
    /// Makes a driver that works on `files`, which hold the given content.
    #[must_use]
    pub fn new(files: Box<dyn Files>, content: Arc<Content>, interrupt: Interrupt) -> Self {
        let (stopwatch, buffer) = (Stopwatch::new(), Vec::new());
        let (tally, unheeded) = (Tally::default(), Tally::default());
        Self { files, content, interrupt, buffer, stopwatch, tally, unheeded }
    }

    /// Returns the tally so far.
    #[must_use]
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Returns the tally since the last call, and begins a new one.
    pub fn take_tally(&mut self) -> Tally {
        mem::take(&mut self.tally)
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// If the target fails the operation; the error names the operation and its path.
    pub fn make_directory(&mut self, path: &str) -> Result<()> {
        self.named(Kind::Mkdir, path, |files| files.make_directory(path))
    }

    /// Removes an empty directory.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn remove_directory(&mut self, path: &str) -> Result<()> {
        self.named(Kind::Rmdir, path, |files| files.remove_directory(path))
    }

    /// Makes an empty file and opens it.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn create(&mut self, path: &str) -> Result<OpenFile> {
        let id = self.named(Kind::Create, path, |files| files.create(path))?;
        Ok(OpenFile { id, path: path.into(), salt: Content::salt(path) })
    }

    /// Opens a file.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn open(&mut self, path: &str, access: Access) -> Result<OpenFile> {
        let id = self.named(Kind::Open, path, |files| files.open(path, access))?;
        Ok(OpenFile { id, path: path.into(), salt: Content::salt(path) })
    }

    /// Closes a file.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn close(&mut self, file: OpenFile) -> Result<()> {
        self.named(Kind::Close, &file.path, |files| files.close(file.id))
    }

    /// Reads `length` bytes of the file's [`Content`], and checks each of them.
    ///
    /// # Errors
    /// If there are fewer bytes, or other bytes, or the target fails the operation.
    pub fn read(&mut self, file: &OpenFile, offset: u64, length: usize) -> Result<()> {
        self.fetch(file, offset, length)?;
        let wrong = self.content.first_wrong(file.salt, offset, &self.buffer[..length]);
        wrong.map_or(Ok(()), |byte| wrong_data(file, offset, byte))
    }

    /// Reads bytes that must equal `wanted`; returns the bytes that were read.
    ///
    /// # Errors
    /// If there are fewer bytes, or other bytes, or the target fails the operation.
    pub fn read_data(&mut self, file: &OpenFile, offset: u64, wanted: &[u8]) -> Result<&[u8]> {
        self.fetch(file, offset, wanted.len())?;
        let found = &self.buffer[..wanted.len()];
        if found != wanted {
            let same = found.iter().zip(wanted).take_while(|(found, wanted)| found == wanted);
            wrong_data(file, offset, offset + same.count() as u64)?;
        }
        Ok(found)
    }

    /// Reads `length` bytes into the buffer.
    fn fetch(&mut self, file: &OpenFile, offset: u64, length: usize) -> Result<()> {
        let mut buffer = mem::take(&mut self.buffer);
        buffer.resize(buffer.len().max(length), 0);
        // Inverts some old bytes, so that stale data of the buffer is not taken for data just read.
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
    /// If fewer bytes are written, or the target fails the operation.
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
    /// If fewer bytes are written, or the target fails the operation.
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

    /// Runs operations that do not count in the figures.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn untimed<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let kept = mem::replace(&mut self.tally, mem::take(&mut self.unheeded));
        let result = work(self);
        self.unheeded = mem::replace(&mut self.tally, kept);
        result
    }

    /// Puts a file on stable storage.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn sync(&mut self, file: &OpenFile) -> Result<()> {
        self.named(Kind::Sync, &file.path, |files| files.sync(file.id))
    }

    /// Attributes of an open file.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn attributes(&mut self, file: &OpenFile) -> Result<Metadata> {
        self.named(Kind::Getattr, &file.path, |files| files.attributes(file.id))
    }

    /// Attributes of a name.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn lookup(&mut self, path: &str) -> Result<Metadata> {
        self.named(Kind::Lookup, path, |files| files.lookup(path))
    }

    /// The entries of a directory.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn list(&mut self, path: &str, attributes: bool) -> Result<Vec<Entry>> {
        self.named(Kind::List, path, |files| files.list(path, attributes))
    }

    /// Makes a symbolic link.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn make_link(&mut self, path: &str, to: &str) -> Result<()> {
        self.named(Kind::Symlink, path, |files| files.make_link(path, to))
    }

    /// Reads a symbolic link whose target must be `to`.
    ///
    /// # Errors
    /// If the target of the link differs, or the operation fails.
    pub fn read_link(&mut self, path: &str, to: &str) -> Result<()> {
        let found = self.named(Kind::Readlink, path, |files| files.read_link(path))?;
        ensure!(found == to, "READLINK of {path}: wrong data, `{found}` instead of `{to}`");
        Ok(())
    }

    /// Removes a file or a symbolic link.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn remove(&mut self, path: &str) -> Result<()> {
        self.named(Kind::Remove, path, |files| files.remove(path))
    }

    /// Gives a file to a user and group.
    ///
    /// # Errors
    /// If the target fails the operation.
    pub fn set_owner(&mut self, path: &str, user: u32, group: u32) -> Result<()> {
        self.named(Kind::Setattr, path, |files| files.set_owner(path, user, group))
    }

    /// Acquires or releases a lock.
    ///
    /// # Errors
    /// If the target fails the operation.
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

    /// Times an operation, and adds its name and path to an error.
    fn named<T>(
        &mut self,
        kind: Kind,
        path: &str,
        operation: impl FnOnce(&mut dyn Files) -> io::Result<T>,
    ) -> Result<T> {
        let result = self.timed(kind, operation)?;
        result.with_context(|| format!("{} of {path}", kind.name()))
    }

    /// Runs an operation and records its time, without the work before and afterwards.
    fn timed<T>(
        &mut self,
        kind: Kind,
        operation: impl FnOnce(&mut dyn Files) -> io::Result<T>,
    ) -> Result<io::Result<T>> {
        self.interrupt.check()?;
        let (result, took) = self.stopwatch.time(|| operation(self.files.as_mut()));
        self.tally.record(kind, took);
        Ok(result)
    }
}

fn wrong_data(file: &OpenFile, offset: u64, byte: u64) -> Result<()> {
    let what = at(Kind::Read, file, offset);
    bail!("{what}: wrong data, byte {byte} of the file is not what was written")
}

fn at(kind: Kind, file: &OpenFile, offset: u64) -> String {
    format!("{} of {} at {offset}", kind.name(), file.path)
}
