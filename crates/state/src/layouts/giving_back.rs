//! LAYOUTRETURN.

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{ClientState, StateKind};
use crate::layout::LayoutIomode;
use crate::lookup::{Found, has_opened};
use crate::{At, ByteRange, Caller, Client, Engine, Error, FileKey, Result, Sender, Stateid};

/// The files whose layouts a client returns at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutScope<'a> {
    /// All files of the file system of this file (LAYOUTRETURN4_FSID).
    FileSystem(&'a FileKey),
    /// All files of the server (LAYOUTRETURN4_ALL) but those of these exports, whose layouts are of
    /// another type.
    ServerBut(&'a [u32]),
}

impl LayoutScope<'_> {
    fn has(self, key: &FileKey) -> bool {
        match self {
            Self::FileSystem(file) => (file.export, file.volume) == (key.export, key.volume),
            Self::ServerBut(exports) => !exports.contains(&key.export),
        }
    }
}

impl Engine {
    /// LAYOUTRETURN of a range of one file (RFC 8881, 18.44), of one iomode or of both. Returns the
    /// next stateid of the layout; none if nothing of it is left.
    ///
    /// Linux returns a layout as the user for whom it first used data servers, and that user may
    /// have nothing of the file any more. So no caller that knows the stateid is refused. But if
    /// the caller has not opened the file and has not asked for the first range of the layout, the
    /// client may not know of the return: the whole layout ends then, and data servers must refuse
    /// its handles.
    ///
    /// # Errors
    /// The errors of a stateid that is not a layout of this file. [`Error::Resource`].
    pub fn layoutreturn(
        &self,
        (sender, key): At<'_>,
        stateid: &Stateid,
        (iomode, range): (Option<LayoutIomode>, ByteRange),
    ) -> Result<Option<Stateid>> {
        let found = self.find(&sender, stateid)?;
        let (client, number) = (&found.client, found.number);
        let mut state = client.live()?;
        found.layout(&state, key, stateid)?;
        if !found.may_return(&state, &sender) {
            self.take_layout_of_another(sender.now, client, &mut state, number);
            return Ok(None);
        }
        if self.take_layout((sender.now, client), &mut state, number, (iomode, range))? {
            return Ok(None);
        }
        state.holdings.change(client.id, number).map(Some)
    }

    /// LAYOUTRETURN of all files of a file system or of the server, of one iomode or of both. It
    /// names no stateid, so the caller must be the principal of the client.
    ///
    /// # Errors
    /// [`Error::WrongCred`], [`Error::Expired`].
    pub fn layoutreturn_all(
        &self,
        (now, caller): (Duration, Caller),
        client: &Arc<Client>,
        (scope, iomode): (LayoutScope<'_>, Option<LayoutIomode>),
    ) -> Result<()> {
        if !client.is_principal(&caller) {
            return Err(Error::WrongCred);
        }
        let mut state = client.live()?;
        let layouts = state.holdings.states().filter(|(_, state)| {
            matches!(state.what, StateKind::Layout(_)) && scope.has(&state.file.key)
        });
        let numbers: Vec<u32> = layouts.map(|(number, _)| number).collect();
        for number in numbers {
            self.take_layout((now, client), &mut state, number, (iomode, ByteRange::ALL))?;
        }
        Ok(())
    }

    /// Ends a layout whose client may go on using it.
    fn take_layout_of_another(
        &self,
        now: Duration,
        client: &Client,
        state: &mut ClientState,
        number: u32,
    ) {
        let file = state.holdings.get(number).map(|it| Arc::clone(&it.file));
        file.iter().for_each(|file| self.fence(file));
        self.drop_layout(now, client, state, number);
    }

    /// Takes a range away from a layout; returns whether nothing of the layout is left.
    fn take_layout(
        &self,
        (now, client): (Duration, &Client),
        state: &mut ClientState,
        number: u32,
        (iomode, range): (Option<LayoutIomode>, ByteRange),
    ) -> Result<bool> {
        let (is_empty, wrote, is_committed) = state.holdings.change_layout(number, |layout| {
            let wrote = layout.take(iomode, range);
            (layout.is_empty(), wrote, layout.is_committed)
        })?;
        if let Some(it) = state.holdings.get(number).filter(|_| wrote) {
            self.end_writing(&it.file, &mut it.file.state(), is_committed);
        }
        if is_empty {
            self.end_returned_layout(now, client, state, number);
        }
        Ok(is_empty)
    }
}

impl Found<'_> {
    /// Returns whether the client knows that this caller returns its layout.
    fn may_return(&self, state: &ClientState, sender: &Sender<'_>) -> bool {
        let Some(it) = state.holdings.get(self.number) else { return false };
        let principal = sender.caller.principal;
        let asked = || match &it.what {
            StateKind::Layout(layout) => layout.principal() == principal,
            _ => false,
        };
        self.client.is_principal(&sender.caller)
            || asked()
            || has_opened(state, (&self.client, &it.file), principal)
    }
}
