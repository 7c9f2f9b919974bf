//! Writes that are answered before the file system below has the data (`dc_write=memory`,
//! `dc_write=journal`), and how the data is sent.

use std::time::{Duration, UNIX_EPOCH};

use comity_vfs::{
    Access, Attr, Change, Changed, Cred, Disk, FileType, Handle, Result, Stability, Status, Time,
    Written,
};

use comity_vfs::permission::mode_after_write;

use super::Cache;
use crate::counters::count;
use crate::dirty::Extents;
use crate::limits::{DIRTY_AGE_MAX, DIRTY_BYTES_MAX, TRANSFER_BYTES_MAX};
use crate::options::WriteMode;
use crate::write_back::{BaseVersion, DirtyFile, InUse};

/// Returns whether a write failed in a way that a retry cannot mend: its data is kept as a
/// conflict.
pub(super) const fn is_final(status: Status) -> bool {
    !matches!(status, Status::Io | Status::Delay | Status::Interrupted | Status::ServerFault)
}

impl Cache {
    /// Writes as the options say. With `opened`, the caller's rights were checked at the open.
    pub(super) fn write_cached(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        (offset, data): (u64, &[u8]),
        opened: bool,
    ) -> Result<Written<Disk>> {
        let attr = self.attr(node)?;
        let fits = offset.checked_add(data.len() as u64).is_some_and(|end| end <= i64::MAX as u64);
        // A write that clears set-id bits is rare, and must be visible at once, so it goes through.
        let is_plain = mode_after_write(cred, &attr) == attr.mode;
        let is_file = attr.file_type == FileType::Regular && is_plain;
        let is_one = fits && is_file && !data.is_empty();
        let goes_through = self.options.write == WriteMode::Through || !is_one;
        if goes_through || !(opened || self.may_write(cred, node, &attr)?) {
            return self.write_below(cred, node, (offset, data), opened);
        }
        if !self.make_room(node, data.len() as u64)? {
            return self.write_below(cred, node, (offset, data), opened);
        }
        // To make room may have sent data of this file.
        let attr = self.attributes.last(node).unwrap_or(attr);
        let file = self.dirty.enter(node, cred, self.now());
        let before = self.shown(node, attr);
        if !self.promise(&file, cred, node, (&attr, offset, data))? {
            return self.write_below(cred, node, (offset, data), opened);
        }
        let change = Change { before: Some(before), after: Some(self.shown(node, attr)) };
        Ok(Changed { value: data.len() as u32, change })
    }

    /// Makes the writer of a file wait until there is room for more unsent data; returns false if
    /// other files take all of it.
    ///
    /// # Errors
    /// The failure to send the data of the file, if a later attempt may succeed. After a final one
    /// there is room, and the next commit reports the loss.
    fn make_room(&self, node: &Handle, bytes: u64) -> Result<bool> {
        let has_room = || self.dirty.bytes().saturating_add(bytes) <= DIRTY_BYTES_MAX;
        if has_room() {
            return Ok(true);
        }
        match self.flush(node) {
            Err(status) if !is_final(status) => Err(status),
            _ => Ok(has_room()),
        }
    }

    fn may_write(&self, cred: &Cred<Disk>, node: &Handle, attr: &Attr<Disk>) -> Result<bool> {
        let (granted, _) = self.rights(cred, node, Access::MODIFY)?;
        Ok(granted == Access::MODIFY || attr.uid == cred.uid)
    }

    /// Stores data as safely as the options demand; returns false if that is impossible.
    ///
    /// # Errors
    /// [`Status::Interrupted`].
    fn promise(
        &self,
        file: &DirtyFile,
        cred: &Cred<Disk>,
        node: &Handle,
        (attr, offset, data): (&Attr<Disk>, u64, &[u8]),
    ) -> Result<bool> {
        let _order = file.order()?;
        // Data of the file may have been sent while this waited.
        let attr = &self.attributes.last(node).unwrap_or(*attr);
        let over = (BaseVersion::of(attr), self.grant_of(node));
        let name = (self.file(node), file.lock().begin(over, self.now()));
        // Append before the state is locked, so that readers of the file do not wait for the disk.
        let record = self.promises().map(|journal| journal.append(name, cred, offset, data));
        let record = match record.transpose() {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(%error, "the journal takes no more: writing through");
                return Ok(false);
            }
        };
        let mut state = file.lock();
        state.begin(over, self.now());
        state.record = record.unwrap_or(state.record);
        let before = state.waiting.bytes();
        state.waiting.put(offset, data);
        self.dirty.count(before, state.waiting.bytes());
        state.cred = cred.clone();
        state.written = self.time();
        self.marks.written(node, attr.change);
        self.tell_size(node, Some(attr.size.max(state.end())));
        Ok(true)
    }

    /// Reports the size of a delegated file, for which the server may ask (CB_GETATTR).
    fn tell_size(&self, node: &Handle, size: Option<u64>) {
        if let Some(files) = self.fs.open_files().filter(|_| self.is_delegated(node)) {
            files.note_unwritten(node, size);
        }
    }

    fn time(&self) -> Time {
        Time::from(UNIX_EPOCH + Duration::from_millis(self.now()))
    }

    /// Writes to the file system below at once, after the unsent data of the file.
    fn write_below(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        (offset, data): (u64, &[u8]),
        opened: bool,
    ) -> Result<Written<Disk>> {
        self.flush(node)?;
        let file = self.dirty.enter(node, cred, self.now());
        let turn = file.turn()?;
        let written = self.write_through(node, offset, data, || match opened {
            true => self.write_opened_below(cred, node, offset, data),
            false => self.fs.write(cred, node, offset, data),
        });
        drop(turn);
        written
    }

    fn write_opened_below(
        &self,
        cred: &Cred<Disk>,
        node: &Handle,
        offset: u64,
        data: &[u8],
    ) -> Result<Written<Disk>> {
        let value = self.fs.write_opened(cred, node, offset, data)?;
        let after = self.fs.getattr(node).ok();
        Ok(Changed { value, change: Change { before: None, after } })
    }

    /// Sends all unsent data of a file to the file system below. A loss of data is left for a
    /// commit to report.
    ///
    /// # Errors
    /// Those of the file system below: the data is still unsent, or was kept as a conflict.
    pub(super) fn flush(&self, node: &Handle) -> Result<()> {
        let Some(file) = self.dirty.get(node) else { return Ok(()) };
        if self.promises().is_some() {
            // Commit, so that the journal forgets the data: after a crash it must not be written
            // over later changes.
            return self.flush_stable(node);
        }
        let _turn = file.turn()?;
        self.send_all(node, &file, Stability::Unstable).map(drop)
    }

    /// The same, and commits the file. The turn is kept until a failure is noted: a commit that
    /// came in between would find nothing to report.
    pub(super) fn flush_stable(&self, node: &Handle) -> Result<()> {
        let Some(file) = self.known_file(node) else {
            return self.fs.commit(node).map(drop);
        };
        let _turn = file.turn()?;
        let record = file.lock().record;
        let reached = self.send_all(node, &file, Stability::FileSync)?;
        let made = self.make_stable(node, record, reached);
        made.map(drop).inspect_err(|status| {
            // The file system below tells of data that it has lost once only, by any status.
            if !matches!(status, Status::Interrupted | Status::Delay) {
                file.lock().losses.note(*status);
            }
        })
    }

    /// The unsent data of a file of which anything is cached.
    pub(super) fn known_file(&self, node: &Handle) -> Option<InUse<'_>> {
        let known = || {
            let attr = self.attributes.last(node)?;
            Some(self.dirty.enter(node, &Cred::new(attr.uid, attr.gid), self.now()))
        };
        self.dirty.get(node).or_else(known)
    }

    /// Sends the data that is unsent now; what is written meanwhile waits, or a program that
    /// appends would keep the caller here for ever. With [`Stability::FileSync`], a single piece
    /// is sent so that it is on stable storage afterwards, with all earlier data of the file.
    /// Returns what holds for the data that was sent: unstable if there was none.
    fn send_all(&self, node: &Handle, file: &DirtyFile, wanted: Stability) -> Result<Stability> {
        let (extents, cred, record) = {
            let mut state = file.lock();
            state.sending = std::mem::take(&mut state.waiting);
            (state.sending.clone(), state.cred.clone(), state.record)
        };
        let mut reached = if extents.is_one_call() { wanted } else { Stability::Unstable };
        if !extents.is_empty() {
            let sent = extents.iter().try_for_each(|(at, data)| {
                reached = self.send((&cred, node, file), at, data, reached)?;
                Ok(())
            });
            self.settle(node, file, sent, record)?;
        }
        Ok(reached)
    }

    /// Checks that the file is still the version that the data was written over, if that is in
    /// doubt. If it is not, the file is left unchanged and the data is kept as a conflict.
    ///
    /// Returns whether it was found to be that version now.
    fn check_base(&self, node: &Handle, file: &DirtyFile) -> Result<bool> {
        let grant = self.grant_of(node);
        if !file.lock().is_in_doubt(grant) {
            return Ok(false);
        }
        let attr = self.fs.getattr(node)?;
        let mut state = file.lock();
        if !state.base.has_data_of(&attr) {
            return Err(Status::Stale);
        }
        state.base = BaseVersion::of(&attr);
        // Without a delegation it may change before the next piece is sent.
        state.doubtful = grant.is_none();
        state.grant = grant.or(state.grant);
        Ok(true)
    }

    /// Ends an attempt to send: the data is sent, waits again, or is kept as a conflict.
    fn settle(&self, node: &Handle, file: &DirtyFile, sent: Result<()>, record: u64) -> Result<()> {
        let given_up = self.settle_state(node, file, sent);
        if let Some(sending) = given_up
            && self.keep_beside(node, &sending)
        {
            self.note_done(node, record, 0);
        }
        sent
    }

    /// The part of [`Cache::settle`] in memory; returns the data to keep as a conflict.
    fn settle_state(&self, node: &Handle, file: &DirtyFile, sent: Result<()>) -> Option<Extents> {
        let mut state = file.lock();
        let sending = std::mem::take(&mut state.sending);
        let before = sending.bytes() + state.waiting.bytes();
        let given_up = match sent {
            Ok(()) => {
                state.since = self.now();
                None
            }
            Err(status) if is_final(status) => {
                state.losses.note(status);
                Some(sending)
            }
            Err(_) => {
                let newer = std::mem::replace(&mut state.waiting, sending);
                state.waiting.put_all(&newer);
                None
            }
        };
        self.dirty.count(before, state.waiting.bytes());
        if state.is_clean() {
            self.tell_size(node, None);
            let last = self.attributes.last(node);
            state.base = last.as_ref().map(BaseVersion::of).unwrap_or_default();
            state.doubtful = false;
        }
        given_up
    }

    /// Writes one piece in as few calls as possible; returns how stable it is. Each call asks first
    /// whether the file is still delegated: the call before may have waited until the lease was
    /// lost.
    fn send(
        &self,
        (cred, node, file): (&Cred<Disk>, &Handle, &DirtyFile),
        offset: u64,
        data: &[u8],
        mut stability: Stability,
    ) -> Result<Stability> {
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            let piece = rest.get(..TRANSFER_BYTES_MAX as usize).unwrap_or(rest);
            let at = offset + done as u64;
            let is_checked = self.check_base(node, file)?;
            let written = self.write_through(node, at, piece, || {
                let written = if stability == Stability::FileSync {
                    self.fs.write_stable(cred, node, at, piece)
                } else {
                    self.fs.write(cred, node, at, piece).map(|it| (it, Stability::Unstable))
                };
                // Data that one call leaves in memory stays there until the commit. And if one call
                // does not carry the piece, a commit is cheaper than many stable writes.
                stability = match &written {
                    Ok((written, reached)) if written.value as usize == piece.len() => *reached,
                    _ => Stability::Unstable,
                };
                match written {
                    Err(Status::Acces | Status::Perm) => {
                        self.write_opened_below(cred, node, at, piece)
                    }
                    written => written.map(|(written, _)| written),
                }
            })?;
            let Change { before, after } = written.change;
            let before = before.map(|attr| attr.change);
            let before = before.or_else(|| is_checked.then(|| file.lock().base.change));
            let after = after.as_ref().map(BaseVersion::of);
            file.lock().note_sent((before, after), self.grant_of(node));
            match written.value {
                0 => return Err(Status::Io),
                count => done += count as usize,
            }
        }
        Ok(stability)
    }

    /// Commits all data of a file, for a program. With a journal and a write delegation the journal
    /// is enough: no other client reads the file, so only a crash of this machine matters.
    ///
    /// # Errors
    /// Those of [`Cache::commit_below`].
    pub(super) fn commit_file(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        if let (Some(file), Some(_)) = (self.dirty.get(node), self.promises())
            && self.is_unshared(node)
        {
            let mut state = file.lock();
            let begun = state.losses.count();
            state.losses.report(begun)?;
            drop(state);
            return self.attr(node).map(|attr| Some(self.shown(node, attr)));
        }
        self.commit_below(node)
    }

    /// Commits data at the file system below, even if the journal has it.
    ///
    /// # Errors
    /// Those of the file system below; a loss of data that came after the beginning, or that no
    /// commit has reported.
    pub(super) fn commit_below(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        let Some(file) = self.dirty.get(node) else {
            return self.make_stable(node, 0, Stability::Unstable);
        };
        let begun = file.lock().losses.count();
        let made = self.send_and_commit(node, &file);
        if made == Err(Status::Interrupted) {
            // Nobody may hear of the answer.
            return made;
        }
        file.lock().losses.report(begun)?;
        made
    }

    fn send_and_commit(&self, node: &Handle, file: &DirtyFile) -> Result<Option<Attr<Disk>>> {
        let record = file.lock().record;
        let turn = file.turn()?;
        let reached = self.send_all(node, file, Stability::FileSync)?;
        drop(turn);
        self.make_stable(node, record, reached)
    }

    /// Commits the data that was sent, unless it is on stable storage already, and notes in the
    /// journal that it is.
    fn make_stable(
        &self,
        node: &Handle,
        record: u64,
        reached: Stability,
    ) -> Result<Option<Attr<Disk>>> {
        if let (Stability::FileSync, Some(attr)) = (reached, self.true_attr(node)) {
            self.note_done(node, record, attr.change);
            return Ok(Some(self.shown(node, attr)));
        }
        let asked = self.attributes.ask();
        let attr = self.fs.commit(node)?;
        if let Some(attr) = attr {
            self.note(node, attr, asked);
        }
        self.note_done(node, record, attr.map_or(0, |attr| attr.change));
        Ok(attr.map(|attr| self.shown(node, attr)))
    }

    /// Notes in the journal that data up to a record need not be recovered.
    fn note_done(&self, node: &Handle, record: u64, change: u64) {
        let Some(journal) = self.journal.as_ref().filter(|_| record > 0) else { return };
        if let Err(error) = journal.done(self.file(node), record, change) {
            tracing::warn!(%error, "the journal cannot note that data was written");
        }
    }

    /// Sends data that has waited for [`DIRTY_AGE_MAX`].
    pub(super) fn send_old(&self) {
        let now = self.now();
        for (node, file) in self.dirty.all() {
            let is_old = {
                let state = file.lock();
                !state.waiting.is_empty() && now.saturating_sub(state.since) >= DIRTY_AGE_MAX
            };
            if is_old && let Err(status) = self.flush(&node) {
                tracing::debug!(%status, "data could not be sent yet");
            }
        }
    }

    /// Keeps data that cannot be written to its file as a conflict; returns whether that worked.
    fn keep_beside(&self, node: &Handle, extents: &Extents) -> bool {
        count(&self.counters.conflicts, 1);
        let name = self.file(node);
        let kept = crate::conflict::keep(self.medium.as_ref(), &name, extents, self.now());
        match &kept {
            Ok(folder) => tracing::error!(
                %folder,
                "data could not be written to its file, and is kept in a folder of the cache"
            ),
            Err(error) => tracing::error!(%error, "data could not be written and is lost"),
        }
        kept.is_ok()
    }
}
