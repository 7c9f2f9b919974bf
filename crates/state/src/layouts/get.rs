//! LAYOUTGET and LAYOUTCOMMIT.

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{ClientState, StateKind};
use crate::file::{File, Holder, NoLayout};
use crate::layout::{LayoutIomode, LayoutState};
use crate::limits::LAYOUT_SEQIDS_OLD_MAX;
use crate::lookup::Found;
use crate::release::has_access;
use crate::sync::atomic::Ordering;
use crate::{At, ByteRange, Client, Engine, Error, FileKey, Io, Result, Sender, Stateid};

impl Engine {
    /// LAYOUTGET (RFC 8881, 18.43): adds a range to the client's layout of a file, which begins
    /// with seqid one. The stateid is that of the layout, or of an open, a lock or a delegation.
    /// The caller's rights must have been checked.
    ///
    /// # Errors
    /// The errors of a stateid that is not valid for this file. [`Error::Openmode`]: the client has
    /// not opened the file for this access. [`Error::RecallConflict`], [`Error::LayoutTryLater`]: a
    /// change contradicts layouts of the file. [`Error::Resource`].
    pub fn layoutget(
        &self,
        (sender, key): At<'_>,
        stateid: &Stateid,
        (iomode, range): (LayoutIomode, ByteRange),
    ) -> Result<Stateid> {
        let client = self.asks_for_layout((sender, key), stateid, iomode)?;
        let file = self.file(key)?;
        let granted = self.extend((&sender, client), &file, (iomode, range));
        self.files.let_go(sender.now, &file);
        granted
    }

    /// Checks that [`Engine::layoutget`] would not refuse this stateid, before anything is made for
    /// the layout.
    ///
    /// # Errors
    /// As [`Engine::layoutget`].
    pub fn check_layoutget(
        &self,
        (sender, key): At<'_>,
        stateid: &Stateid,
        iomode: LayoutIomode,
    ) -> Result<()> {
        let client = self.asks_for_layout((sender, key), stateid, iomode)?;
        let file = self.files.get(key).ok_or(Error::Openmode)?;
        let state = client.live()?;
        may_have(&state, sender.now, (client, &file), iomode)
    }

    /// Checks the stateid of a LAYOUTGET; returns the client.
    fn asks_for_layout<'a>(
        &self,
        (sender, key): At<'a>,
        stateid: &Stateid,
        iomode: LayoutIomode,
    ) -> Result<&'a Arc<Client>> {
        let client = sender.client.ok_or(Error::BadStateid)?;
        if !self.names_layout((sender, key), stateid)? {
            let io = Io { file: key, access: iomode.access(), user: None };
            self.check_io(sender, stateid, &io)?.ok_or(Error::BadStateid)?;
        }
        Ok(client)
    }

    /// Checks that a client may commit a range that it has written to data servers (LAYOUTCOMMIT;
    /// RFC 8881, 18.42).
    ///
    /// # Errors
    /// The errors of a stateid that is not valid for this file. [`Error::BadLayout`]: the client
    /// has no layout for writing all of the range.
    pub fn check_layoutcommit(
        &self,
        (sender, key): At<'_>,
        stateid: &Stateid,
        range: ByteRange,
    ) -> Result<()> {
        let found = self.find(&sender, stateid)?;
        let state = found.client.live()?;
        let layout = found.layout(&state, key, stateid)?;
        if layout.allows_write(range) { Ok(()) } else { Err(Error::BadLayout) }
    }

    /// Checks the stateid of a layout with which a client reports what it has met at data servers
    /// (LAYOUTERROR, LAYOUTSTATS; RFC 7862, 15.6 and 15.7). Returns whether the layout allows
    /// writing.
    ///
    /// # Errors
    /// The errors of a stateid that is not that of a layout of this file.
    pub fn check_layout(&self, (sender, key): At<'_>, stateid: &Stateid) -> Result<bool> {
        let found = self.find(&sender, stateid)?;
        let state = found.client.live()?;
        found.layout(&state, key, stateid).map(LayoutState::is_for_writing)
    }

    /// Returns whether a stateid names a layout of this file, and not an open, a lock or a
    /// delegation.
    fn names_layout(&self, (sender, key): At<'_>, stateid: &Stateid) -> Result<bool> {
        if stateid.special().is_some() {
            return Err(Error::BadStateid);
        }
        let found = self.find(&sender, stateid)?;
        let state = found.client.live()?;
        match &state.at(found.number)?.what {
            StateKind::Layout(_) => found.layout(&state, key, stateid).map(|_| true),
            _ => Ok(false),
        }
    }

    fn extend(
        &self,
        (sender, client): (&Sender<'_>, &Arc<Client>),
        file: &Arc<File>,
        (iomode, range): (LayoutIomode, ByteRange),
    ) -> Result<Stateid> {
        let mut state = client.live()?;
        may_have(&state, sender.now, (client, file), iomode)?;
        let known = file.state().layouts.of(client.id);
        if let Some(number) = known {
            if state.holdings.change_layout(number, |layout| layout.add(iomode, range))? {
                self.begin_writing(file);
            }
            return state.holdings.change(client.id, number);
        }
        let mut layout = LayoutState::new(sender.caller.principal);
        let writes = layout.add(iomode, range);
        let what = StateKind::Layout(layout);
        let number = state.holdings.insert(&self.settings.limits, (sender.now, file), what)?;
        if file.state().layouts.insert(Holder { client: client.id, state: number }) {
            self.files.layouts.fetch_add(1, Ordering::SeqCst);
        }
        if writes {
            self.begin_writing(file);
        }
        Ok(Stateid::new(client.id, number, 1))
    }
}

/// Checks that a client may have a layout of a file now.
fn may_have(
    state: &ClientState,
    now: Duration,
    (client, file): (&Client, &File),
    iomode: LayoutIomode,
) -> Result<()> {
    if !has_access(state, (client, file), iomode) {
        return Err(Error::Openmode);
    }
    match file.state().layouts.refusal(now) {
        None => Ok(()),
        Some(NoLayout::Recall) => Err(Error::RecallConflict),
        Some(NoLayout::Rest) => Err(Error::LayoutTryLater),
    }
}

impl Found<'_> {
    /// Returns the layout that a stateid names. Several requests for one layout may be on their
    /// way, so a seqid that is not much older is accepted; zero is not (RFC 8881, 12.5.3).
    pub(super) fn layout<'s>(
        &self,
        state: &'s ClientState,
        key: &FileKey,
        stateid: &Stateid,
    ) -> Result<&'s LayoutState> {
        let it = state.at(self.number)?;
        let StateKind::Layout(layout) = &it.what else { return Err(Error::BadStateid) };
        if it.file.key != *key {
            return Err(Error::BadStateid);
        }
        check_seqid(stateid.seqid, it.seqid).map(|()| layout)
    }
}

/// Compares the seqid of a layout's stateid with the current one. The seqid wraps from the highest
/// value to one, so a seqid that is far ahead counts as old.
const fn check_seqid(given: u32, current: u32) -> Result<()> {
    match current.wrapping_sub(given) {
        _ if given == 0 => Err(Error::BadStateid),
        0..=LAYOUT_SEQIDS_OLD_MAX => Ok(()),
        behind if behind < 1 << 31 => Err(Error::OldStateid),
        _ => Err(Error::BadStateid),
    }
}
