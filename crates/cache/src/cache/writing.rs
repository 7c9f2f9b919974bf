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
use crate::write_back::DirtyFile;

/// Returns whether a write failed in a way that a retry cannot mend: its data is kept as a
/// conflict.
const fn is_final(status: Status) -> bool {
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
        let file = self.dirty.enter(node, cred, self.now());
        let before = self.shown(node, attr);
        if !self.promise(&file, cred, node, (&attr, offset, data)) {
            return self.write_below(cred, node, (offset, data), opened);
        }
        let change = Change { before: Some(before), after: Some(self.shown(node, attr)) };
        // Make the writer wait until there is room. A failure may be one of earlier data.
        if self.dirty.bytes() > DIRTY_BYTES_MAX
            && let Err(status) = self.flush(node)
        {
            self.tell_later(node, status);
        }
        Ok(Changed { value: data.len() as u32, change })
    }

    fn may_write(&self, cred: &Cred<Disk>, node: &Handle, attr: &Attr<Disk>) -> Result<bool> {
        let (granted, _) = self.rights(cred, node, Access::MODIFY)?;
        Ok(granted == Access::MODIFY || attr.uid == cred.uid)
    }

    /// Stores data as safely as the options demand; returns false if that is impossible.
    fn promise(
        &self,
        file: &DirtyFile,
        cred: &Cred<Disk>,
        node: &Handle,
        (attr, offset, data): (&Attr<Disk>, u64, &[u8]),
    ) -> bool {
        let _order = file.order();
        let name = (self.file(node), file.lock().begin(attr.change, self.now()));
        // Append before the state is locked, so that readers of the file do not wait for the disk.
        let record = self.promises().map(|journal| journal.append(name, cred, offset, data));
        let record = match record.transpose() {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(%error, "the journal takes no more: writing through");
                return false;
            }
        };
        let mut state = file.lock();
        state.begin(attr.change, self.now());
        state.record = record.unwrap_or(state.record);
        let before = state.waiting.bytes();
        state.waiting.put(offset, data);
        self.dirty.count(before, state.waiting.bytes());
        state.cred = cred.clone();
        state.written = self.time();
        self.marks.written(node, attr.change);
        self.tell_size(node, Some(attr.size.max(state.end())));
        true
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
        let turn = file.turn();
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

    /// Sends all unsent data of a file to the file system below.
    ///
    /// # Errors
    /// Those of the file system below: the data is still unsent, or was kept as a conflict.
    pub(super) fn flush(&self, node: &Handle) -> Result<()> {
        if self.promises().is_some() && self.dirty.get(node).is_some() {
            // Commit, so that the journal forgets the data: after a crash it must not be written
            // over later changes.
            return self.commit_below(node).map(|_| ());
        }
        let Some(file) = self.dirty.get(node) else { return Ok(()) };
        let _turn = file.turn();
        self.send_all(node, &file, Stability::Unstable).map(drop)
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
            let sent = self.check_base(node, file).and_then(|()| {
                extents.iter().try_for_each(|(at, data)| {
                    reached = self.send((&cred, node), at, data, reached)?;
                    Ok(())
                })
            });
            self.settle(node, file, sent, record)?;
        }
        file.lock().failure.take().map_or(Ok(reached), Err)
    }

    /// Checks that the file is still the version that the data was written over, if that is in
    /// doubt. If it is not, the file is left unchanged and the data is kept as a conflict.
    fn check_base(&self, node: &Handle, file: &DirtyFile) -> Result<()> {
        if !file.lock().doubtful {
            return Ok(());
        }
        let attr = self.fs.getattr(node)?;
        let mut state = file.lock();
        state.doubtful = false;
        if attr.change == state.base { Ok(()) } else { Err(Status::Stale) }
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
            Err(status) if is_final(status) => Some(sending),
            Err(_) => {
                let newer = std::mem::replace(&mut state.waiting, sending);
                state.waiting.put_all(&newer);
                None
            }
        };
        self.dirty.count(before, state.waiting.bytes());
        if state.is_clean() {
            self.tell_size(node, None);
            state.base = self.attributes.last(node).map_or(0, |attr| attr.change);
        }
        given_up
    }

    /// Writes one piece in as few calls as possible; returns how stable it is.
    fn send(
        &self,
        (cred, node): (&Cred<Disk>, &Handle),
        offset: u64,
        data: &[u8],
        mut stability: Stability,
    ) -> Result<Stability> {
        let mut done = 0;
        while let Some(rest) = data.get(done..).filter(|rest| !rest.is_empty()) {
            let piece = rest.get(..TRANSFER_BYTES_MAX as usize).unwrap_or(rest);
            let at = offset + done as u64;
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
            match written.value {
                0 => return Err(Status::Io),
                count => done += count as usize,
            }
        }
        Ok(stability)
    }

    /// Commits all data of a file. With a journal and a delegation the journal is enough: no other
    /// client reads the file, so only a crash of this machine matters.
    pub(super) fn commit_file(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        let is_promised = self.promises().is_some() && self.dirty.get(node).is_some();
        if is_promised && self.is_delegated(node) {
            return self.attr(node).map(|attr| Some(self.shown(node, attr)));
        }
        self.commit_below(node)
    }

    /// Commits data at the file system below, even if the journal has it.
    pub(super) fn commit_below(&self, node: &Handle) -> Result<Option<Attr<Disk>>> {
        let file = self.dirty.get(node);
        let record = file.as_ref().map_or(0, |file| file.lock().record);
        let mut reached = Stability::Unstable;
        if let Some(file) = file {
            let _turn = file.turn();
            reached = self.send_all(node, &file, Stability::FileSync)?;
        }
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
                self.tell_later(&node, status);
            }
        }
    }

    /// Stores a failure for the next fsync(2) or close(2) of a program, if it was not reported to
    /// any caller.
    fn tell_later(&self, node: &Handle, status: Status) {
        if is_final(status)
            && let Some(attr) = self.attributes.last(node)
        {
            let cred = Cred::new(attr.uid, attr.gid);
            self.dirty.enter(node, &cred, self.now()).lock().failure = Some(status);
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
