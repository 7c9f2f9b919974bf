//! Small files of a placement with a threshold. Their bytes stay in the file system of the metadata
//! server until they grow, or until a client asks for a layout to write; then they are placed.

use std::sync::Arc;

use comity_vfs::{
    Access, Attr, Cred, Disk, FileType, Handle, Read, ReadInto, Result, SetAttr, SetTime, Status,
    Time, XattrMode,
};

use crate::data_files::{DataFile, read_piece};
use crate::holds::Use;
use crate::limits::{COPY_BYTES, UNIT_BYTES_MIN};
use crate::moves::{Replaced, of_data_server};
use crate::own_data::has_own_data;
use crate::placed::{FileUse, Placed};
use crate::record::PlaceRecord;
use crate::stripes::StripePiece;

/// Refuses a use that needs all bytes of a file in the file system below.
pub(crate) fn must_be_own(using: &FileUse<'_>) -> Result<()> {
    if using.place.is_some() { Err(Status::NotSupp) } else { Ok(()) }
}

impl Placed {
    /// Begins a write to a file that ends at the offset `end`. If a small file would no longer be
    /// small then, it is first placed on data servers, provided that the caller may write to it.
    /// Without a caller, the right was checked before.
    ///
    /// # Errors
    /// As [`Placed::begin_use`]; [`Status::Delay`]: a data server does not answer.
    pub(crate) fn begin_growth(
        &self,
        cred: Option<&Cred<Disk>>,
        file: &Handle,
        end: Option<u64>,
    ) -> Result<FileUse<'_>> {
        self.place_before_growth(cred, file, end.ok_or(Status::FBig)?, None)?;
        self.begin_use(file, Use::Change)
    }

    /// The same for a change of the size, if the ctime of the file is the guard. The guard becomes
    /// the ctime that a placing has given the file.
    ///
    /// # Errors
    /// As [`Placed::begin_growth`]. [`Status::NotSync`]: the file was not placed, as its ctime is
    /// another one.
    pub(crate) fn begin_resize(
        &self,
        cred: &Cred<Disk>,
        file: &Handle,
        size: u64,
        guard: &mut Option<Time>,
    ) -> Result<FileUse<'_>> {
        let placed = self.place_before_growth(Some(cred), file, size, *guard)?;
        *guard = guard.map(|ctime| placed.unwrap_or(ctime));
        self.begin_use(file, Use::Change)
    }

    fn place_before_growth(
        &self,
        cred: Option<&Cred<Disk>>,
        file: &Handle,
        end: u64,
        guard: Option<Time>,
    ) -> Result<Option<Time>> {
        match self.settings.placed_from_bytes() {
            Some(bytes) if end >= bytes => self.place_small(cred, file, guard),
            _ => Ok(None),
        }
    }

    /// Begins a use of a file that needs all its bytes in the file system below.
    ///
    /// # Errors
    /// [`Status::NotSupp`]: the file is placed. Clients then use READ and WRITE instead.
    pub(crate) fn begin_own_use(&self, node: &Handle, what: Use) -> Result<FileUse<'_>> {
        let using = self.begin_use(node, what)?;
        must_be_own(&using).map(|()| using)
    }

    /// The same for both files of a copy. A small target that grows is placed before.
    pub(crate) fn begin_own_copy(
        &self,
        cred: &Cred<Disk>,
        source: (&Handle, u64),
        target: (&Handle, u64),
        length: u64,
    ) -> Result<[FileUse<'_>; 2]> {
        if self.settings.placed_from_bytes().is_some() {
            let available = self.below.getattr(source.0)?.size.saturating_sub(source.1);
            // A length of zero stands for all bytes to the end.
            let copied = if length == 0 { available } else { available.min(length) };
            drop(self.begin_growth(Some(cred), target.0, target.1.checked_add(copied))?);
        }
        Ok([self.begin_own_use(source.0, Use::Look)?, self.begin_own_use(target.0, Use::Change)?])
    }

    /// Reads from the file system below, whose bytes may be freed after the use of the file.
    pub(crate) fn read_own(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        (offset, count): (u64, u32),
        into: &mut ReadInto<'_>,
    ) -> Result<Read<Disk>> {
        if self.settings.placed_from_bytes().is_some_and(|bytes| offset < bytes) {
            let bytes = &mut *into.bytes;
            let mut copied = ReadInto { by_reference_from: u32::MAX, opened: into.opened, bytes };
            return self.below.read(cred, node, offset, count, &mut copied);
        }
        self.below.read(cred, node, offset, count, into)
    }

    /// Places a small file of which a client wants a layout to write. A file without bytes other
    /// than zeros may be one that has lost its place: it stays, so that a rebuild can find it.
    pub(crate) fn place_for_layout(&self, file: &Handle) -> Result<()> {
        let Some(attr) = self.small(file)? else { return Ok(()) };
        if attr.size > 0 && !has_own_data(&*self.below, file)? {
            return Ok(());
        }
        self.place_small(None, file, None).map(drop)
    }

    /// Places a small file; does nothing for another one. The file is whole at each moment: its
    /// bytes are on stable storage of data servers before its place is, and that before the bytes
    /// here are freed. With a guard, the file must have this ctime. Returns the ctime afterwards of
    /// a file that was placed.
    fn place_small(
        &self,
        cred: Option<&Cred<Disk>>,
        file: &Handle,
        guard: Option<Time>,
    ) -> Result<Option<Time>> {
        if self.small(file)?.is_none() {
            return Ok(None);
        }
        if let Some(cred) = cred {
            self.judge(cred, file, Access::MODIFY)?;
        }
        let placing = self.known.holds.begin_placing(file)?;
        placing.await_uses()?;
        // Another thread may have placed it, or a change that was under way has made it longer.
        let Some(attr) = self.small(file)? else { return Ok(None) };
        if guard.is_some_and(|ctime| ctime != attr.ctime) {
            return Err(Status::NotSync);
        }
        match self.place_unused(file, &attr) {
            Err(Status::NotSupp) => {
                tracing::warn!("a file got no place; its data stay on this server");
                Ok(None)
            }
            placed => placed.and_then(|()| Ok(Some(self.below.getattr(file)?.ctime))),
        }
    }

    /// Returns the attributes of a file if it is small and has no place. A file without a name is
    /// left: nobody would remove its data files.
    fn small(&self, file: &Handle) -> Result<Option<Attr<Disk>>> {
        let Some(bytes) = self.settings.placed_from_bytes() else { return Ok(None) };
        if self.record(file)?.is_some() {
            return Ok(None);
        }
        let attr = self.below.getattr(file)?;
        let is_small = attr.file_type == FileType::Regular && attr.links > 0 && attr.size < bytes;
        Ok(is_small.then_some(attr))
    }

    /// Places a file that nobody uses at this moment.
    fn place_unused(&self, file: &Handle, attr: &Attr<Disk>) -> Result<()> {
        let mut new = self.new_record(file)?;
        let copied = self.copy_own(&mut new, attr.size).map_err(of_data_server);
        let stored = match copied {
            Ok(_) => self.store_first(&new, attr),
            Err(status) => Replaced::Not(status),
        };
        match stored {
            Replaced::Done => {
                self.free_own(file, attr.size);
                self.known.used.note(file, copied?);
                Ok(())
            }
            Replaced::Not(status) => {
                if attr.size > 0 {
                    self.discard(&new, None);
                }
                Err(status)
            }
            Replaced::Unclear(status) => {
                let name = new.name();
                tracing::error!(
                    %status, name,
                    "the place of a file may not be on stable storage; its bytes here stay"
                );
                Err(status)
            }
        }
    }

    /// Copies the bytes of a file to its data files, which are on stable storage then. Returns the
    /// bytes that they use. Mirrors that fail are broken from the start, as long as one is whole.
    fn copy_own(&self, new: &mut PlaceRecord, size: u64) -> Result<u64> {
        if size == 0 {
            return Ok(0);
        }
        let own = DataFile { fs: Arc::clone(&self.below), handle: new.file };
        let (mut bytes, mut offset) = (Vec::new(), 0);
        while offset < size {
            let length = (size - offset).min(COPY_BYTES);
            bytes.clear();
            read_piece(&own, StripePiece { server: 0, offset, length }, &mut bytes)?;
            if bytes.iter().any(|byte| *byte != 0) {
                new.leave_out(self.files.write_new(new, offset, &bytes)?);
            }
            offset += length;
        }
        new.leave_out(self.files.extend(new, size)?);
        let (used, failed) = self.files.commit_new((new, true))?;
        new.leave_out(failed);
        Ok(used)
    }

    /// Stores the first place of a file that had these attributes before it was copied.
    fn store_first(&self, new: &PlaceRecord, before: &Attr<Disk>) -> Replaced {
        let file = &new.file;
        let _turn = self.lock(file);
        match self.below.getattr(file) {
            Ok(now) if (now.size, now.ctime) == (before.size, before.ctime) => {}
            // A program on this server has changed the file.
            Ok(_) => return Replaced::Not(Status::Delay),
            Err(status) => return Replaced::Not(status),
        }
        if let Err(replaced) = self.store(file, new, XattrMode::Create) {
            return replaced;
        }
        let noted = self.noted(file, PlaceRecord::clone(new));
        self.known.records.insert(*file, Some(noted));
        match self.below.commit(file) {
            Ok(_) => Replaced::Done,
            Err(status) => Replaced::Unclear(status),
        }
    }

    /// Frees the bytes of a placed file of this size that are still here.
    fn free_own(&self, file: &Handle, size: u64) {
        if size == 0 {
            return;
        }
        match self.punch_own(file, size) {
            Ok(()) | Err(Status::NotSupp) => {}
            Err(status) => {
                tracing::warn!(%status, "a file on data servers uses space here as well");
            }
        }
    }

    /// The size stays, and the time of the last change of the bytes, which clients may set at any
    /// moment.
    fn punch_own(&self, file: &Handle, size: u64) -> Result<()> {
        let (server, before) = (Cred::root(), self.below.getattr(file)?.mtime);
        // File systems free whole blocks only, the last one too if the hole extends beyond the end.
        let length = size.next_multiple_of(UNIT_BYTES_MIN.into());
        let punched = self.below.deallocate(&server, file, 0, length)?.after;
        let now = self.below.getattr(file)?.mtime;
        if punched.is_some_and(|punched| punched.mtime != now) {
            return Ok(());
        }
        let set = SetAttr { mtime: Some(SetTime::To(before)), ..SetAttr::default() };
        self.below.setattr(&server, file, &set, None).map(drop)
    }
}
