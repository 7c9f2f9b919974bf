//! The move of a file from data servers that are being drained to those of new files.

use std::sync::Arc;

use comity_vfs::{Cred, Handle, MovedFile, Name, Result, SetAttr, Status, XattrMode};

use crate::data_files::DataFiles;
use crate::holds::MoveHold;
use crate::limits::COPY_BYTES;
use crate::placed::{ATTRIBUTE, Placed};
use crate::record::PlaceRecord;

/// A file that is being moved.
struct MovingFile<'m> {
    file: &'m Handle,
    old: &'m PlaceRecord,
    new: &'m Arc<PlaceRecord>,
    size: u64,
}

/// A step before a file of this place is copied.
type Preparation = fn(&Placed, &Handle, &PlaceRecord) -> Result<()>;

/// The outcome of an attempt to replace the place of a file.
enum Replaced {
    /// The new place is on stable storage.
    Done,
    /// The old place is in force.
    Not(Status),
    /// The place after a power cut is unknown, so both copies have to stay.
    Unclear(Status),
}

impl Placed {
    /// Moves the bytes of a file; see [`comity_vfs::Placement::move_file`].
    pub(crate) fn move_file_away(
        &self,
        file: &Handle,
        clear: &dyn Fn() -> Result<()>,
        copied: &dyn Fn(u64),
    ) -> Result<MovedFile> {
        let moving = self.known.holds.begin_move(file)?;
        let Some(old) = self.record(file)? else { return Ok(MovedFile::Stayed) };
        if !self.files.is_draining(&old) && !old.is_degraded() {
            return Ok(MovedFile::Stayed);
        }
        clear()?;
        moving.await_changes()?;
        let Some(old) = self.settle(file)? else { return Ok(MovedFile::Stayed) };
        let size = self.below.getattr(file)?.size;
        let has_gaps = self.has_gaps(&old, (file, size));
        let new = Arc::new(self.new_record(file)?);
        if new.is_degraded() {
            return Err(Status::Delay);
        }
        self.carry_out(&MovingFile { file, old: &old, new: &new, size }, &moving, copied)?;
        Ok(MovedFile::Moved { bytes: size, has_gaps })
    }

    /// Makes a file ready to be copied that nobody changes; returns its place afterwards. Each step
    /// may break mirrors, and so may a client that has returned its layout.
    fn settle(&self, file: &Handle) -> Result<Option<Arc<PlaceRecord>>> {
        let steps: [Preparation; 3] =
            [Self::fence_in_turn, Self::commit_in_move, Self::mark_shorter];
        for step in steps {
            let Some(record) = self.record(file)? else { return Ok(None) };
            step(self, file, &record)?;
        }
        self.record(file)
    }

    fn fence_in_turn(&self, file: &Handle, record: &PlaceRecord) -> Result<()> {
        self.fence_data(&self.lock(file), (file, record))
    }

    /// Commits the old data files. Until then, a data server may lose bytes that this server would
    /// write again at the COMMIT of the client, which is sent to the new ones.
    fn commit_in_move(&self, file: &Handle, record: &PlaceRecord) -> Result<()> {
        self.commit_unused((file, record)).map(drop)
    }

    /// Marks the mirrors as broken that lack a part of the file, if another one has all of it.
    fn mark_shorter(&self, file: &Handle, record: &PlaceRecord) -> Result<()> {
        let shorter = self.lacking_mirrors((file, record))?;
        self.mark_broken(&self.lock(file), file, shorter)
    }

    /// Returns whether data servers lack a part of the file. It was lost, or never written.
    fn has_gaps(&self, record: &PlaceRecord, file: (&Handle, u64)) -> bool {
        (0..record.servers.len()).any(|at| self.lacks((record, at), file))
    }

    /// Copies the file, replaces its place, and removes the copy that is not in force.
    fn carry_out(
        &self,
        it: &MovingFile<'_>,
        moving: &MoveHold<'_>,
        copied: &dyn Fn(u64),
    ) -> Result<()> {
        let prepared = self.files.copy(it, copied).and_then(|used| {
            moving.stop_all()?;
            Ok(used)
        });
        let replaced = match prepared {
            Ok(_) => self.replace(it),
            Err(status) => Replaced::Not(status),
        };
        match (replaced, prepared) {
            (Replaced::Done, used) => {
                self.known.used.note(it.file, used.unwrap_or(it.size));
                self.known.broken.forget(it.file);
                self.discard(it.old);
                Ok(())
            }
            (Replaced::Not(status), _) => {
                self.discard(it.new);
                Err(status)
            }
            (Replaced::Unclear(status), _) => {
                let name = it.old.name();
                tracing::error!(
                    %status, name,
                    "the new place of a file may not be on stable storage; its old data files stay"
                );
                Err(status)
            }
        }
    }

    /// Replaces the place of a file, of which no use is under way.
    fn replace(&self, it: &MovingFile<'_>) -> Replaced {
        let turn = self.lock(it.file);
        match self.record_in_turn(&turn, it.file) {
            Ok(Some(now)) if *now == *it.old => {}
            // A mirror has broken meanwhile.
            Ok(_) => return Replaced::Not(Status::Delay),
            Err(status) => return Replaced::Not(status),
        }
        match self.below.getattr(it.file) {
            Ok(attr) if attr.size == it.size => {}
            // A program on this server has changed the size.
            Ok(_) => return Replaced::Not(Status::Delay),
            Err(status) => return Replaced::Not(status),
        }
        if let Err(status) = self.store(it) {
            return status;
        }
        self.known.records.insert(*it.file, Some(Arc::clone(it.new)));
        match self.below.commit(it.file) {
            Ok(_) => Replaced::Done,
            Err(status) => Replaced::Unclear(status),
        }
    }

    fn store(&self, it: &MovingFile<'_>) -> std::result::Result<(), Replaced> {
        let name = Name::new(ATTRIBUTE).map_err(Replaced::Not)?;
        let bytes = it.new.encode(&self.key);
        let set =
            self.below.setxattr(&Cred::root(), it.file, name, Some(&bytes), XattrMode::Replace);
        let Err(status) = set else { return Ok(()) };
        self.known.records.remove(it.file);
        // The attribute tells whether the failed call has changed it.
        match self.below.getxattr(&Cred::root(), it.file, name) {
            Ok(now) if now == bytes => Ok(()),
            Ok(_) => Err(Replaced::Not(status)),
            Err(_) => Err(Replaced::Unclear(status)),
        }
    }

    /// Removes data files that no file refers to any more.
    fn discard(&self, record: &PlaceRecord) {
        if let Err(status) = self.files.remove(record) {
            let name = record.name();
            tracing::warn!(%status, name, "data files of a move stay on a data server as orphans");
        }
    }
}

impl DataFiles {
    /// Copies the bytes of a file to its new data files, which are on stable storage then. Returns
    /// the bytes that they use.
    fn copy(&self, it: &MovingFile<'_>, copied: &dyn Fn(u64)) -> Result<u64> {
        let (mut bytes, mut offset) = (Vec::new(), 0);
        while offset < it.size {
            let length = (it.size - offset).min(COPY_BYTES);
            bytes.clear();
            self.read(it.old, (offset, length), &mut bytes)?;
            if bytes.iter().any(|byte| *byte != 0) {
                self.write_new(it.new, offset, &bytes)?;
            }
            offset += length;
            copied(offset);
        }
        self.extend(it.new, it.size)?;
        self.commit_new(it.new)
    }

    /// Gives the data files of a file of this size the length that they must have.
    fn extend(&self, record: &PlaceRecord, size: u64) -> Result<()> {
        for at in 0..record.servers.len() {
            let needs = record.length_on(at, size);
            if needs > 0 {
                self.extend_one((record, at), needs)?;
            }
        }
        Ok(())
    }

    fn extend_one(&self, (record, at): (&PlaceRecord, usize), needs: u64) -> Result<()> {
        let file = self.make(record, at)?;
        if file.fs.getattr(&file.handle)?.size < needs {
            let set = SetAttr { size: Some(needs), ..SetAttr::default() };
            file.fs.setattr(&Cred::root(), &file.handle, &set, None)?;
        }
        Ok(())
    }
}
