//! LAYOUTRETURN.

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::{ClientState, StateKind};
use crate::layout::LayoutIomode;
use crate::{At, ByteRange, Client, Engine, Error, FileKey, Result, Stateid};

/// The files whose layouts a client returns at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutScope<'a> {
    /// All files of the file system of this file (LAYOUTRETURN4_FSID).
    FileSystem(&'a FileKey),
    /// All files of the server (LAYOUTRETURN4_ALL).
    Server,
}

impl LayoutScope<'_> {
    fn has(self, key: &FileKey) -> bool {
        match self {
            Self::FileSystem(file) => (file.export, file.volume) == (key.export, key.volume),
            Self::Server => true,
        }
    }
}

impl Engine {
    /// LAYOUTRETURN of a range of one file (RFC 8881, 18.44), of one iomode or of both. Returns the
    /// next stateid of the layout; none if nothing of it is left.
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
        if self.take_layout((sender.now, client), &mut state, number, (iomode, range))? {
            return Ok(None);
        }
        let it = state.holdings.get_mut(number).ok_or(Error::BadStateid)?;
        Ok(Some(it.change(client.id, number)))
    }

    /// LAYOUTRETURN of all files of a file system or of the server, of one iomode or of both.
    ///
    /// # Errors
    /// [`Error::Expired`].
    pub fn layoutreturn_all(
        &self,
        now: Duration,
        client: &Arc<Client>,
        (scope, iomode): (LayoutScope<'_>, Option<LayoutIomode>),
    ) -> Result<()> {
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

    /// Takes a range away from a layout; returns whether nothing of the layout is left.
    fn take_layout(
        &self,
        (now, client): (Duration, &Client),
        state: &mut ClientState,
        number: u32,
        (iomode, range): (Option<LayoutIomode>, ByteRange),
    ) -> Result<bool> {
        let is_empty = state.holdings.change_layout(number, |layout| {
            layout.take(iomode, range);
            layout.is_empty()
        })?;
        if is_empty {
            self.end_returned_layout(now, client, state, number);
        }
        Ok(is_empty)
    }
}
