//! The data files of mirrored files: every data server of a file has all of its bytes.

use comity_vfs::{Create, Cred, Mode, Name, Result, SetAttr, Status};

use crate::data_files::{DataFile, DataFiles, commit_one, cut_one, read_piece, write_piece};
use crate::mirrors::MirrorSet;
use crate::record::{PlaceRecord, Spread};
use crate::stripes::StripePiece;
use crate::synthetic_ids::MirrorOwner;

/// The outcome of work at the mirrors of a file.
pub(crate) struct Mirrored<T> {
    /// The results with the numbers of their mirrors, in the order in which mirrors are read.
    pub(crate) done: Vec<(usize, T)>,
    /// The mirrors at which the work has failed.
    pub(crate) failed: MirrorSet,
}

impl PlaceRecord {
    /// The numbers of the mirrors that are not broken. The order differs from file to file, so that
    /// reading is spread over the data servers.
    pub(crate) fn whole(&self) -> impl Iterator<Item = usize> {
        let (broken, count) = (self.broken(), self.servers.len());
        let first = (self.number % count.max(1) as u128) as usize;
        (first..count).chain(0..first).filter(move |at| !broken.has(*at))
    }

    /// Returns whether a mirror is broken.
    pub(crate) const fn is_degraded(&self) -> bool {
        !self.broken().is_empty()
    }
}

impl DataFiles {
    /// Does work at each mirror of a file that is not broken.
    ///
    /// # Errors
    /// All have failed: [`Status::Delay`] if one of them does not answer, and so may do the work
    /// later; [`Status::NoSpc`]; [`Status::Io`].
    pub(crate) fn at_mirrors<T>(
        &self,
        record: &PlaceRecord,
        work: impl Fn(usize) -> Result<T>,
    ) -> Result<Mirrored<T>> {
        let (mut done, mut failed, mut why) = (Vec::new(), MirrorSet::NONE, Status::Io);
        for at in record.whole() {
            match work(at) {
                Ok(result) => done.push((at, result)),
                Err(status) => {
                    failed = failed.and(MirrorSet::of(at));
                    why = reason(why, status);
                }
            }
        }
        if done.is_empty() { Err(why) } else { Ok(Mirrored { done, failed }) }
    }

    /// Does work on the data file of each mirror that is not broken. A mirror without a data file
    /// fails, unless no mirror has one: then nothing was written, and there is no result.
    ///
    /// # Errors
    /// As [`DataFiles::at_mirrors`]. [`Status::Delay`]: the file has bytes, and only mirrors that
    /// fail can have them.
    fn on_mirrors<T>(
        &self,
        (record, has_bytes): (&PlaceRecord, bool),
        work: impl Fn(&DataFile) -> Result<T>,
    ) -> Result<Mirrored<T>> {
        let Mirrored { done, mut failed } =
            self.at_mirrors(record, |at| self.on_mirror((record, at), &work))?;
        let is_written = done.iter().any(|(_, result)| result.is_some());
        let mut results = Vec::new();
        for (at, result) in done {
            match result {
                Some(result) => results.push((at, result)),
                None if is_written => failed = failed.and(MirrorSet::of(at)),
                None => {}
            }
        }
        if results.is_empty() && !failed.is_empty() && has_bytes {
            return Err(Status::Delay);
        }
        Ok(Mirrored { done: results, failed })
    }

    /// Reads a range of a file, which must not extend beyond the file's end. Bytes that no data
    /// server has are zero.
    pub(crate) fn read(
        &self,
        record: &PlaceRecord,
        range: (u64, u64),
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        match record.spread {
            Spread::Stripes(unit_bytes) => self.read_stripes((record, unit_bytes), range, bytes),
            Spread::Mirrors(_) => self.read_mirror(record, range, bytes),
        }
    }

    /// Reads a range of a mirrored file from the first mirror that has all of it. If none has, the
    /// longest one counts.
    fn read_mirror(
        &self,
        record: &PlaceRecord,
        (offset, length): (u64, u64),
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        let (mut longest, mut why) = (None::<Vec<u8>>, None);
        for at in record.whole() {
            match self.read_one((record, at), (offset, length)) {
                Ok(None) => {}
                Ok(Some(read)) if read.len() as u64 >= length => {
                    bytes.extend(read);
                    return Ok(());
                }
                Ok(Some(read)) => longest = Some(longer(longest, read)),
                Err(status) => why = Some(reason(why.unwrap_or(Status::Io), status)),
            }
        }
        // A mirror that does not answer may have the bytes.
        if let Some(why) = why {
            return Err(why);
        }
        // A file of which mirrors broke has data files, unless they were lost.
        if longest.is_none() && record.is_degraded() {
            return Err(Status::Io);
        }
        let end = bytes.len() + length as usize;
        bytes.extend(longest.unwrap_or_default());
        bytes.resize(end, 0);
        Ok(())
    }

    /// Reads what a mirror has of a range; returns `None` if it has no data file.
    pub(crate) fn read_one(
        &self,
        mirror: (&PlaceRecord, usize),
        (offset, length): (u64, u64),
    ) -> Result<Option<Vec<u8>>> {
        let piece = StripePiece { server: mirror.1, offset, length };
        self.on_mirror(mirror, |file| {
            let mut read = Vec::new();
            read_piece(file, piece, &mut read).map(|()| read)
        })
    }

    /// Writes data to all mirrors; returns those that failed. The data files must be there.
    pub(crate) fn write_mirrors(
        &self,
        record: &PlaceRecord,
        offset: u64,
        data: &[u8],
    ) -> Result<MirrorSet> {
        let written = self.on_mirrors((record, true), |file| write_piece(file, offset, data))?;
        if written.done.is_empty() { Err(Status::Io) } else { Ok(written.failed) }
    }

    /// Returns when the data of a file are on stable storage, with the bytes that a mirror uses and
    /// the mirrors that failed.
    ///
    /// # Errors
    /// [`Status::Io`]: the file is degraded and has bytes, and its last data file is lost;
    /// [`Status`].
    pub(crate) fn commit_mirrors(&self, record: (&PlaceRecord, bool)) -> Result<(u64, MirrorSet)> {
        let committed = self.on_mirrors(record, commit_one)?;
        let (record, has_bytes) = record;
        if committed.done.is_empty() && has_bytes && record.is_degraded() {
            return Err(Status::Io);
        }
        Ok((first(&committed), committed.failed))
    }

    /// Removes the bytes of a file from the offset `size` on; returns the bytes that a mirror uses
    /// and the mirrors that failed.
    pub(crate) fn cut_mirrors(&self, record: &PlaceRecord, size: u64) -> Result<(u64, MirrorSet)> {
        let cut = self.on_mirrors((record, size > 0), |file| cut_one(file, size))?;
        Ok((first(&cut), cut.failed))
    }

    /// Returns whether the data files of a file are known to be there.
    pub(crate) fn are_made(&self, record: &PlaceRecord) -> bool {
        record.whole().all(|at| self.known.handles.get(&(record.number, at)).is_some())
    }

    /// Creates the data files of a file unless they are there; returns the mirrors that failed. A
    /// mirror without a data file fails if another one has bytes. Only one thread at a time may
    /// call this for a file.
    pub(crate) fn make_mirrors(&self, record: &PlaceRecord, has_bytes: bool) -> Result<MirrorSet> {
        if self.are_made(record) {
            return Ok(MirrorSet::NONE);
        }
        let size = |file: &DataFile| Ok(file.fs.getattr(&file.handle)?.size);
        let found = self.on_mirrors((record, has_bytes), size)?;
        if found.done.iter().any(|(_, size)| *size > 0) {
            return Ok(found.failed);
        }
        let made = self.at_mirrors(record, |at| match self.find(record, at)? {
            Some(_) => Ok(()),
            None => self.create_mirror(record, at),
        })?;
        Ok(made.failed)
    }

    /// Creates a data file that only root may use, until a layout names it.
    fn create_mirror(&self, record: &PlaceRecord, at: usize) -> Result<()> {
        self.known.owners.insert((record.number, at), MirrorOwner::Unused);
        let fs = self.server(record, at)?;
        let (name, top) = (record.name(), fs.root());
        let set = SetAttr { mode: Some(Mode::new(0o600)), ..SetAttr::default() };
        let name = Name::new(name.as_bytes())?;
        let made = fs.create(&Cred::root(), &top, name, &Create::Unchecked(set))?;
        self.known.handles.insert((record.number, at), made.value.handle);
        Ok(())
    }

    /// Writes data of a new file; returns the mirrors that failed.
    pub(crate) fn write_new(
        &self,
        record: &PlaceRecord,
        offset: u64,
        data: &[u8],
    ) -> Result<MirrorSet> {
        if let Spread::Stripes(unit_bytes) = record.spread {
            let written = self.write_stripes((record, unit_bytes), offset, data);
            return written.map(|()| MirrorSet::NONE);
        }
        let failed = self.make_mirrors(record, false)?;
        Ok(failed.and(self.write_mirrors(record, offset, data)?))
    }

    /// Does what [`DataFiles::commit`] does for a new file; returns the mirrors that failed, too.
    pub(crate) fn commit_new(&self, record: (&PlaceRecord, bool)) -> Result<(u64, MirrorSet)> {
        match record.0.spread {
            Spread::Stripes(_) => Ok((self.commit(record.0)?, MirrorSet::NONE)),
            Spread::Mirrors(_) => self.commit_mirrors(record),
        }
    }
}

/// The result of the mirror that is read first; zero if nothing was written.
fn first(mirrored: &Mirrored<u64>) -> u64 {
    mirrored.done.first().map_or(0, |(_, bytes)| *bytes)
}

/// Returns the longer one of what mirrors have of a range.
fn longer(before: Option<Vec<u8>>, read: Vec<u8>) -> Vec<u8> {
    before.filter(|before| before.len() >= read.len()).unwrap_or(read)
}

/// Returns the error that callers get of several: one after which they call again comes first.
const fn reason(before: Status, status: Status) -> Status {
    match (before, status) {
        (Status::Delay, _) | (_, Status::Delay) => Status::Delay,
        (_, Status::NoSpc | Status::DQuot | Status::FBig) => status,
        (before, _) => before,
    }
}
