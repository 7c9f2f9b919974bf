//! The size of a file that clients have written by layouts without a LAYOUTCOMMIT (RFC 8881,
//! 12.5.4): the data servers know it.

use std::thread;

use comity_vfs::{Attr, Disk, FileType, Handle, Result, Status, Time};

use crate::data_files::DataFiles;
use crate::holds::Use;
use crate::limits::MIRROR_LAG;
use crate::mirrors::MirrorSet;
use crate::placed::Placed;
use crate::record::{PlaceRecord, Spread};
use crate::sizes::SetIdBits;

/// The bytes of a file on all its data servers together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredBytes {
    /// The offset after the last byte.
    end: u64,
    /// The time of the last write, by the clock of the data server; `None` without data files.
    written: Option<Time>,
}

impl Placed {
    /// Extends a file to the end of its bytes; see [`comity_vfs::Placement::learn_size`].
    pub(crate) fn extend_to_stored(&self, file: &Handle) -> Result<()> {
        let Some(using) = self.using(file, Use::Change)? else { return Ok(()) };
        // The lock is not held during the calls to data servers: threads that serve may need it.
        let truncations = *self.lock(file);
        let stored = self.files.stored_bytes(&using.record)?;
        let shorter = self.files.mirrors_that_stay_shorter(&using.record)?;
        let turn = self.lock(file);
        if *turn != truncations {
            return Err(Status::Delay);
        }
        self.mark_broken(&turn, file, shorter)?;
        let attr = self.below.getattr(file)?;
        if !stored.is_news_of(&attr) {
            return Ok(());
        }
        match self.note_in_turn(&turn, file, (Some(stored.end), SetIdBits::Cleared)) {
            Err(Status::FBig) => {
                let (fileid, end) = (attr.fileid, stored.end);
                tracing::warn!(fileid, end, "a client wrote beyond the largest size of a file");
                Ok(())
            }
            noted => noted.map(drop),
        }
    }
}

impl StoredBytes {
    const NONE: Self = Self { end: 0, written: None };

    /// The offset after the last byte.
    pub(crate) const fn end(self) -> u64 {
        self.end
    }

    /// The time of the last write; `None` without data files.
    pub(crate) const fn written(self) -> Option<Time> {
        self.written
    }

    fn with(self, data_file: &Attr<Disk>) -> Self {
        let Attr { size, mtime, .. } = *data_file;
        Self { end: self.end.max(size), written: self.written.max(Some(mtime)) }
    }

    /// Returns whether these bytes change the attributes of their file. Every change of a file that
    /// the metadata server knows of sets the ctime, so a later write of a data file is unknown.
    fn is_news_of(&self, file: &Attr<Disk>) -> bool {
        self.end > file.size || self.written > Some(file.ctime)
    }
}

impl DataFiles {
    /// Asks all data servers of a file what they have of it.
    pub(crate) fn stored_bytes(&self, record: &PlaceRecord) -> Result<StoredBytes> {
        if let Spread::Mirrors(_) = record.spread {
            return self.mirrored_bytes(record);
        }
        (0..record.servers.len()).try_fold(StoredBytes::NONE, |sum, at| {
            let found = self.look(record, at)?;
            let regular = found.filter(|attr| attr.file_type == FileType::Regular);
            Ok(regular.map_or(sum, |attr| sum.with(&attr)))
        })
    }

    /// The same for a mirrored file. A mirror that does not answer is not awaited: a client has
    /// written what counts to all of them.
    fn mirrored_bytes(&self, record: &PlaceRecord) -> Result<StoredBytes> {
        let looked = self.at_mirrors(record, |at| self.look(record, at))?;
        let found = looked.done.iter().filter_map(|(_, attr)| attr.as_ref());
        let regular = found.filter(|attr| attr.file_type == FileType::Regular);
        Ok(regular.fold(StoredBytes::NONE, StoredBytes::with))
    }

    /// Returns the mirrors of a file that lack bytes at the end: a client has died before it has
    /// written to all mirrors. One that lives writes to them one after the other.
    fn mirrors_that_stay_shorter(&self, record: &PlaceRecord) -> Result<MirrorSet> {
        let shorter = self.shorter_mirrors(record)?;
        if shorter.is_empty() {
            return Ok(shorter);
        }
        thread::sleep(MIRROR_LAG);
        Ok(shorter.common(self.shorter_mirrors(record)?))
    }

    fn shorter_mirrors(&self, record: &PlaceRecord) -> Result<MirrorSet> {
        let Spread::Mirrors(_) = record.spread else { return Ok(MirrorSet::NONE) };
        let sizes =
            self.at_mirrors(record, |at| Ok(self.look(record, at)?.map_or(0, |attr| attr.size)))?;
        let longest = sizes.done.iter().map(|(_, size)| *size).max();
        let shorter = sizes.done.iter().filter(|(_, size)| Some(*size) < longest);
        Ok(shorter.fold(MirrorSet::NONE, |set, (at, _)| set.and(MirrorSet::of(*at))))
    }
}
