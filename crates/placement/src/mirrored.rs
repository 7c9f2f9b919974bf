//! Mirrored files as [`Placed`] uses them: a mirror that fails is broken for the file from then on,
//! which its place says, and the others are used.

use std::sync::{Arc, MutexGuard};

use comity_vfs::{
    Cred, DeviceId, Distribution, Handle, MirrorFile, Name, Result, Status, StripeFault, XattrMode,
};

use crate::holds::Use;
use crate::limits::COPY_BYTES;
use crate::mirror_owners::OwnedMirror;
use crate::mirrors::MirrorSet;
use crate::placed::{ATTRIBUTE, Placed};
use crate::record::{PlaceRecord, Spread};

/// The lock of a file, from [`Placed::lock`].
type FileLock<'t> = MutexGuard<'t, u64>;

/// A file and its place.
type PlacedFile<'f> = (&'f Handle, &'f PlaceRecord);

impl Placed {
    /// Writes data to the data servers of a file.
    pub(crate) fn write_data(
        &self,
        (file, record): PlacedFile<'_>,
        offset: u64,
        data: &[u8],
    ) -> Result<()> {
        if let Spread::Stripes(unit_bytes) = record.spread {
            return self.files.write_stripes((record, unit_bytes), offset, data);
        }
        self.await_recall(file)?;
        if !self.files.are_made(record) {
            let turn = self.lock(file);
            let failed = self.files.make_mirrors(record, self.has_bytes(file)?)?;
            self.mark_broken(&turn, file, failed)?;
        }
        let order = self.known.lock_mirrors(file);
        let failed = self.files.write_mirrors(record, offset, data)?;
        drop(order);
        self.mark(file, failed)
    }

    /// Returns when the data of a file are on stable storage, with the bytes that they use.
    pub(crate) fn commit_data(&self, file: PlacedFile<'_>) -> Result<u64> {
        self.await_recall(file.0)?;
        self.commit_unused(file)
    }

    /// The same for a file of which no client has a layout.
    pub(crate) fn commit_unused(&self, (file, record): PlacedFile<'_>) -> Result<u64> {
        if let Spread::Stripes(_) = record.spread {
            return self.files.commit(record);
        }
        let (used, failed) = self.files.commit_mirrors((record, self.has_bytes(file)?))?;
        self.mark(file, failed).map(|()| used)
    }

    /// Counts a truncation that begins; returns the size of the file before it.
    pub(crate) fn begin_cut(&self, turn: &mut FileLock<'_>, file: &Handle) -> Result<u64> {
        self.await_recall(file)?;
        **turn = turn.wrapping_add(1);
        Ok(self.below.getattr(file)?.size)
    }

    /// Gives a file, which had the size `before`, another size: removes the bytes from the offset
    /// `size` on. Returns the bytes that the others use.
    pub(crate) fn cut_data(
        &self,
        turn: &FileLock<'_>,
        (file, record): PlacedFile<'_>,
        (before, size): (u64, u64),
    ) -> Result<u64> {
        if let Spread::Stripes(_) = record.spread {
            return self.files.cut(record, size);
        }
        let mut failed = MirrorSet::NONE;
        // A file that has a size has data files, so that it is told when they are lost.
        if before == 0 && size > 0 {
            failed = self.files.make_mirrors(record, false)?;
        }
        let _order = self.known.lock_mirrors(file);
        let (used, not_cut) = self.files.cut_mirrors(record, size)?;
        self.mark_broken(turn, file, failed.and(not_cut)).map(|()| used)
    }

    /// Has data servers refuse what clients with layouts of a file do.
    pub(crate) fn fence_data(
        &self,
        turn: &FileLock<'_>,
        (file, record): PlacedFile<'_>,
    ) -> Result<()> {
        if let Spread::Stripes(_) = record.spread {
            return self.files.fence(record);
        }
        let failed = self.files.fence_mirrors(record)?;
        self.mark_broken(turn, file, failed)
    }

    /// Returns the mirrors of a file for a client. A client that writes must write to all that are
    /// not broken; one that reads does without those that do not answer.
    pub(crate) fn mirrors_for_client(
        &self,
        (file, record): PlacedFile<'_>,
        writes: bool,
    ) -> Result<Option<Distribution>> {
        self.await_recall(file)?;
        let turn = self.lock(file);
        let mut failed = self.files.make_mirrors(record, self.has_bytes(file)?)?;
        let owned = self.files.owned_mirrors(record)?;
        failed = failed.and(owned.failed);
        if writes {
            self.mark_broken(&turn, file, failed)?;
        }
        // A mirror may have failed before its owner was set.
        let usable = owned.done.into_iter().filter(|(at, _)| !failed.has(*at));
        let mirror = |(at, (handle, ids)): (usize, OwnedMirror)| {
            let device = self.mirror_device(record, at)?;
            let ids = ids.of_client(writes);
            Some(MirrorFile { device, handle, uid: ids.uid, gid: ids.gid })
        };
        let usable: Option<Vec<_>> = usable.map(mirror).collect();
        Ok(usable.filter(|mirrors| !mirrors.is_empty()).map(Distribution::Mirrors))
    }

    /// Returns whether no mirror of these is broken by now.
    pub(crate) fn are_whole(&self, file: &Handle, mirrors: &[MirrorFile]) -> bool {
        let Ok(Some(record)) = self.record(file) else { return false };
        let whole: Vec<_> =
            record.whole().filter_map(|at| self.mirror_device(&record, at)).collect();
        mirrors.iter().all(|mirror| whole.contains(&mirror.device))
    }

    /// Marks the mirror of an error that a client has met. The last mirror stays in use.
    pub(crate) fn note_error(&self, file: &Handle, device: &DeviceId) -> Result<()> {
        let turn = self.lock(file);
        let Some(record) = self.record_in_turn(&turn, file)? else { return Ok(()) };
        let Some(at) = self.whole_on(&record, device) else { return Ok(()) };
        match self.mark_broken(&turn, file, MirrorSet::of(at)) {
            // Its layouts are being recalled, or it is the last mirror.
            Err(Status::Delay) => Ok(()),
            marked => marked,
        }
    }

    /// Marks the mirror at which a client could not read a range, if this server cannot either.
    pub(crate) fn note_read_error(
        &self,
        file: &Handle,
        device: &DeviceId,
        range: (u64, u64),
    ) -> Result<()> {
        let Some(using) = self.using(file, Use::Look)? else { return Ok(()) };
        let Some(at) = self.whole_on(&using.record, device) else { return Ok(()) };
        match self.is_harmed((file, &using.record), at, range)? {
            true => self.note_error(file, device),
            false => Ok(()),
        }
    }

    /// Returns whether a mirror fails at the beginning of a range, or lacks a part of the file. One
    /// that does not answer may be whole.
    fn is_harmed(
        &self,
        file: PlacedFile<'_>,
        at: usize,
        (offset, length): (u64, u64),
    ) -> Result<bool> {
        let size = self.below.getattr(file.0)?.size;
        let length = size.saturating_sub(offset).min(length).min(COPY_BYTES);
        match self.files.read_one((file.1, at), (offset, length)) {
            Ok(_) => Ok(self.lacking_mirrors(file)?.has(at)),
            Err(status) => Ok(status != Status::Delay),
        }
    }

    /// Returns the mirrors that lack a part of the file, if another one has all of it.
    pub(crate) fn lacking_mirrors(&self, (file, record): PlacedFile<'_>) -> Result<MirrorSet> {
        let Spread::Mirrors(_) = record.spread else { return Ok(MirrorSet::NONE) };
        let size = self.below.getattr(file)?.size;
        let lacks = |at: &usize| self.lacks((record, *at), (file, size));
        let (lacking, others): (Vec<_>, Vec<_>) = record.whole().partition(lacks);
        let has_all = |at: &usize| {
            let fault = self.fault(record, *at, (file, size));
            matches!(fault, None | Some(StripeFault::Long { .. }))
        };
        if !others.iter().any(has_all) {
            return Ok(MirrorSet::NONE);
        }
        Ok(lacking.into_iter().fold(MirrorSet::NONE, |set, at| set.and(MirrorSet::of(at))))
    }

    /// Returns whether one of the data files of a file of this size lacks a part.
    pub(crate) fn lacks(&self, (record, at): (&PlaceRecord, usize), file: (&Handle, u64)) -> bool {
        let fault = self.fault(record, at, file);
        matches!(fault, Some(StripeFault::Missing(_) | StripeFault::Short { .. }))
    }

    /// Returns the mirror of a file on a device, unless it is broken.
    fn whole_on(&self, record: &PlaceRecord, device: &DeviceId) -> Option<usize> {
        record.whole().find(|at| self.mirror_device(record, *at).is_some_and(|it| it == *device))
    }

    /// Returns whether mirrors must have bytes of a file.
    fn has_bytes(&self, file: &Handle) -> Result<bool> {
        Ok(self.below.getattr(file)?.size > 0)
    }

    fn mirror_device(&self, record: &PlaceRecord, at: usize) -> Option<DeviceId> {
        let Spread::Mirrors(_) = record.spread else { return None };
        self.devices.of(record.servers.get(at..=at)?)
    }

    /// Refuses a use of a file while clients may have layouts that name a broken mirror.
    fn await_recall(&self, file: &Handle) -> Result<()> {
        if self.known.broken.awaits_recall(file) { Err(Status::Delay) } else { Ok(()) }
    }

    fn mark(&self, file: &Handle, failed: MirrorSet) -> Result<()> {
        match failed.is_empty() {
            true => Ok(()),
            false => self.mark_broken(&self.lock(file), file, failed),
        }
    }

    /// Marks mirrors of a file as broken, on stable storage.
    ///
    /// # Errors
    /// [`Status::Delay`]: clients may have layouts that name one of the mirrors, or no mirror is
    /// left; [`Status`].
    pub(crate) fn mark_broken(
        &self,
        turn: &FileLock<'_>,
        file: &Handle,
        failed: MirrorSet,
    ) -> Result<()> {
        let Some(now) = self.record_in_turn(turn, file)? else { return Err(Status::Delay) };
        let broken = now.broken().and(failed);
        if failed.is_empty() {
            return Ok(());
        }
        if broken == now.broken() {
            return self.await_recall(file);
        }
        // Another thread has met errors at the other mirrors. The caller tries again.
        if !broken.is_part_of(now.servers.len()) {
            return Err(Status::Delay);
        }
        let spread = Spread::Mirrors(broken);
        let new = Arc::new(PlaceRecord { spread, ..PlaceRecord::clone(&now) });
        self.store_mark(file, &new)?;
        let awaits_recall = self.files.may_have_layouts(&new);
        self.known.broken.note(file, &new, awaits_recall);
        if awaits_recall { Err(Status::Delay) } else { Ok(()) }
    }

    fn store_mark(&self, file: &Handle, new: &Arc<PlaceRecord>) -> Result<()> {
        let (name, bytes) = (Name::new(ATTRIBUTE)?, new.encode(&self.key));
        self.known.records.remove(file);
        self.below.setxattr(&Cred::root(), file, name, Some(&bytes), XattrMode::Replace)?;
        self.below.commit(file)?;
        self.known.records.insert(*file, Some(Arc::clone(new)));
        let broken = (0..).zip(&new.servers).filter(|(at, _)| new.broken().has(*at));
        let servers: Vec<&str> = broken.map(|(_, name)| &**name).collect();
        let (name, servers) = (new.name(), servers.join(", "));
        tracing::warn!(name, servers, "a file has lost mirrors; the others are used");
        Ok(())
    }
}
