//! The move of a file from data servers that are being drained to those of new files, and the copy
//! of a mirrored file to the mirrors that it lacks.

use std::sync::Arc;

use comity_vfs::{Cred, Handle, MovedFile, Name, Result, SetAttr, Status, XattrMode};

use crate::data_files::{DataFile, DataFiles, commit_one};
use crate::holds::MoveHold;
use crate::limits::COPY_BYTES;
use crate::mirrors::MirrorSet;
use crate::placed::{ATTRIBUTE, Placed};
use crate::record::{PlaceRecord, Spread};
use crate::resilver::MovePlan;
use crate::synthetic_ids::MirrorOwner;

/// A file that is being moved.
struct MovingFile<'m> {
    file: &'m Handle,
    old: &'m PlaceRecord,
    /// The data files that are written.
    copies: &'m PlaceRecord,
    new: &'m Arc<PlaceRecord>,
    size: u64,
}

/// A step before a file of this place is copied.
type Preparation = fn(&Placed, &Handle, &PlaceRecord) -> Result<()>;

/// The outcome of an attempt to replace the place of a file.
pub(crate) enum Replaced {
    /// The new place is on stable storage.
    Done,
    /// The old place is in force.
    Not(Status),
    /// The place after a power cut is unknown, so both copies have to stay.
    Unclear(Status),
}

/// The data files that may be removed after a move, by their numbers in a place.
struct Leftovers {
    /// Those of the old place once the new one is in force; all without a list.
    old: Option<Vec<usize>>,
    /// Those of the new place if the old one stays in force.
    new: Vec<usize>,
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
        if !self.needs_move(&old) {
            return Ok(MovedFile::Stayed);
        }
        clear()?;
        moving.await_changes()?;
        let Some(old) = self.settle(file)? else { return Ok(MovedFile::Stayed) };
        let size = self.below.getattr(file)?.size;
        let has_gaps = self.has_gaps(&old, (file, size));
        let MovePlan { copies, new } = self.plan_move((file, size), &old)?;
        let it = MovingFile { file, old: &old, copies: &copies, new: &new, size };
        self.carry_out(&it, &moving, copied)?;
        let bytes = if copies.servers.is_empty() { 0 } else { size };
        Ok(MovedFile::Moved { bytes, has_gaps })
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
        let copied = self.files.copy(it, copied);
        // Files of data servers that are missing are no reason to take this file for removed.
        let prepared = copied.map_err(of_data_server).and_then(|used| {
            moving.stop_all()?;
            Ok(used)
        });
        let leftovers = self.files.leftovers(it);
        let replaced = match prepared {
            Ok(_) => self.replace(it),
            Err(status) => Replaced::Not(status),
        };
        match (replaced, prepared) {
            (Replaced::Done, used) => {
                self.known.used.note(it.file, used.unwrap_or(it.size));
                self.known.broken.forget(it.file);
                self.discard(it.old, leftovers.old.as_deref());
                Ok(())
            }
            (Replaced::Not(status), copied) => {
                self.discard(it.copies, None);
                if copied.is_ok() {
                    self.discard(it.new, Some(&leftovers.new));
                }
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
        // No call uses data files of this number until the lock is given back.
        let installed = self.files.install(it).map_err(of_data_server).map_err(Replaced::Not);
        let stored = installed.and_then(|()| self.store(it.file, it.new, XattrMode::Replace));
        if let Err(replaced) = stored {
            self.files.forget(it.new);
            return replaced;
        }
        self.known.records.insert(*it.file, Some(Arc::clone(it.new)));
        match self.below.commit(it.file) {
            Ok(_) => Replaced::Done,
            Err(status) => Replaced::Unclear(status),
        }
    }

    /// Stores the place of a file, not yet on stable storage.
    pub(crate) fn store(
        &self,
        file: &Handle,
        new: &PlaceRecord,
        mode: XattrMode,
    ) -> std::result::Result<(), Replaced> {
        let name = Name::new(ATTRIBUTE).map_err(Replaced::Not)?;
        let bytes = new.encode(&self.key);
        let set = self.below.setxattr(&Cred::root(), file, name, Some(&bytes), mode);
        let Err(status) = set else { return Ok(()) };
        self.known.records.remove(file);
        // The attribute tells whether the failed call has changed it.
        match self.below.getxattr(&Cred::root(), file, name) {
            Ok(now) if now == bytes => Ok(()),
            Ok(_) | Err(Status::NoXattr) => Err(Replaced::Not(status)),
            Err(_) => Err(Replaced::Unclear(status)),
        }
    }

    /// Removes the data files of a place that no file has any more; `which` are their numbers, all
    /// without it.
    pub(crate) fn discard(&self, record: &PlaceRecord, which: Option<&[usize]>) {
        let removed = match which {
            None => self.files.remove(record),
            Some(which) => self.files.remove_at(record, which),
        };
        if let Err(status) = removed {
            let name = record.name();
            tracing::warn!(%status, name, "data files of a move stay on a data server as orphans");
        }
    }
}

impl DataFiles {
    /// Copies the bytes of a file to its new data files, which are on stable storage then. Returns
    /// the bytes that they use.
    fn copy(&self, it: &MovingFile<'_>, copied: &dyn Fn(u64)) -> Result<u64> {
        self.make_room(it)?;
        self.fit_kept(it)?;
        if it.copies.servers.is_empty() {
            return self.commit_mirrors((it.old, false)).map(|(used, _)| used);
        }
        let (mut bytes, mut offset) = (Vec::new(), 0);
        while offset < it.size {
            let length = (it.size - offset).min(COPY_BYTES);
            bytes.clear();
            self.read(it.old, (offset, length), &mut bytes)?;
            if bytes.iter().any(|byte| *byte != 0) {
                must_be_none(self.write_new(it.copies, offset, &bytes)?)?;
            }
            offset += length;
            copied(offset);
        }
        must_be_none(self.extend(it.copies, it.size)?)?;
        let (used, failed) = self.commit_new((it.copies, it.size > 0))?;
        must_be_none(failed).map(|()| used)
    }

    /// Removes the broken mirrors in whose places new ones are made. Nobody reads them, and a data
    /// server that loses the name of the new one in a crash must not show the old one again.
    fn make_room(&self, it: &MovingFile<'_>) -> Result<()> {
        let is_replaced = |at: &usize| {
            let server = it.old.servers.get(*at);
            it.old.broken().has(*at)
                && server.is_some_and(|server| it.copies.servers.contains(server))
        };
        let replaced: Vec<usize> = (0..it.old.servers.len()).filter(is_replaced).collect();
        self.remove_at(it.old, &replaced)
    }

    /// Gives the mirrors that stay the length that new ones get: a shorter one would be taken for
    /// one that lacks bytes.
    fn fit_kept(&self, it: &MovingFile<'_>) -> Result<()> {
        for at in it.old.whole() {
            let Some(server) = it.old.servers.get(at) else { continue };
            if it.copies.number != it.new.number && it.new.servers.contains(server) {
                self.on_mirror((it.old, at), |file| fit_one(file, it.size))?;
            }
        }
        Ok(())
    }

    /// Returns what a move leaves that keeps the number of its file. A data server may have two
    /// names: then the copy that is on the new one is found on the old one, whose data file is the
    /// new one.
    fn leftovers(&self, it: &MovingFile<'_>) -> Leftovers {
        if it.copies.number == it.new.number {
            return Leftovers { old: None, new: Vec::new() };
        }
        let outside = |record: &PlaceRecord, other: &PlaceRecord| -> Vec<usize> {
            let all = record.servers.iter().enumerate();
            all.filter(|(_, server)| !other.servers.contains(server)).map(|(at, _)| at).collect()
        };
        let (mut old, mut new) = (outside(it.old, it.new), outside(it.new, it.old));
        let count = old.len();
        old.retain(|at| matches!(self.has_copy(it, *at), Ok(false)));
        if old.len() < count {
            new.clear();
        }
        Leftovers { old: Some(old), new }
    }

    /// Returns whether a copy is found on a data server of the old place.
    fn has_copy(&self, it: &MovingFile<'_>, at: usize) -> Result<bool> {
        let (fs, name) = (self.server(it.old, at)?, it.copies.name());
        match fs.lookup(&Cred::root(), &fs.root(), Name::new(name.as_bytes())?) {
            Ok(_) => Ok(true),
            Err(Status::NoEnt) => Ok(false),
            Err(status) => Err(status),
        }
    }

    /// Puts new mirrors of a file that keeps its number in their places. No use of the file may be
    /// under way.
    fn install(&self, it: &MovingFile<'_>) -> Result<()> {
        if it.copies.number == it.new.number {
            return Ok(());
        }
        self.forget(it.new);
        for at in 0..it.copies.servers.len() {
            self.install_one(it, at)?;
        }
        self.forget(it.copies);
        // Mirrors of a file without bytes are all there, or none is.
        if it.size == 0 {
            must_be_none(self.make_mirrors(it.new, false)?)?;
        }
        // The fence has taken the kept mirrors from clients, and nobody has had the new ones.
        for at in 0..it.new.servers.len() {
            self.known.owners.insert((it.new.number, at), MirrorOwner::Unused);
        }
        Ok(())
    }

    /// Gives one new mirror its name. A file without bytes has none yet.
    fn install_one(&self, it: &MovingFile<'_>, at: usize) -> Result<()> {
        let (fs, from, to) = (self.server(it.copies, at)?, it.copies.name(), it.new.name());
        let (top, to) = (fs.root(), Name::new(to.as_bytes())?);
        if it.size > 0 {
            let from = Name::new(from.as_bytes())?;
            return fs.rename(&Cred::root(), (&top, from), (&top, to)).map(drop);
        }
        match fs.remove(&Cred::root(), &top, to) {
            Ok(_) | Err(Status::NoEnt) => Ok(()),
            Err(status) => Err(status),
        }
    }

    /// Gives the data files of a file of this size the length that they must have; returns the
    /// mirrors that failed.
    pub(crate) fn extend(&self, record: &PlaceRecord, size: u64) -> Result<MirrorSet> {
        let extend = |at| self.extend_one((record, at), record.length_on(at, size));
        if let Spread::Mirrors(_) = record.spread {
            return self.at_mirrors(record, extend).map(|extended| extended.failed);
        }
        (0..record.servers.len()).try_for_each(extend).map(|()| MirrorSet::NONE)
    }

    fn extend_one(&self, (record, at): (&PlaceRecord, usize), needs: u64) -> Result<()> {
        if needs == 0 {
            return Ok(());
        }
        let file = self.make(record, at)?;
        if file.fs.getattr(&file.handle)?.size < needs {
            let set = SetAttr { size: Some(needs), ..SetAttr::default() };
            file.fs.setattr(&Cred::root(), &file.handle, &set, None)?;
        }
        Ok(())
    }
}

/// Refuses to move a file to mirrors of which some have failed.
const fn must_be_none(failed: MirrorSet) -> Result<()> {
    if failed.is_empty() { Ok(()) } else { Err(Status::Delay) }
}

/// Gives a data file a length, on stable storage.
fn fit_one(file: &DataFile, size: u64) -> Result<()> {
    if file.fs.getattr(&file.handle)?.size != size {
        let set = SetAttr { size: Some(size), ..SetAttr::default() };
        file.fs.setattr(&Cred::root(), &file.handle, &set, None)?;
        commit_one(file)?;
    }
    Ok(())
}

/// The status of a move of which a data server lacks a file that was there.
pub(crate) const fn of_data_server(status: Status) -> Status {
    match status {
        Status::NoEnt | Status::Stale => Status::Delay,
        status => status,
    }
}
