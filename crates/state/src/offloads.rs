//! Asynchronous copies (RFC 7862, 4): their progress, their results, and whether they are
//! cancelled. The thread that copies asks the engine before each piece.

use std::sync::Arc;
use std::time::Duration;

use crate::client_state::Offload;
use crate::lookup::has_opened;
use crate::{
    BeginOffload, Caller, Client, Effect, Engine, Error, FileKey, OffloadEnd, Result, Stateid,
};

/// The progress of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OffloadStatus {
    /// Number of bytes copied.
    pub copied: u64,
    /// The result, if the copy has ended.
    pub end: Option<OffloadEnd>,
}

/// A copy that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyUnderWay {
    /// The file that is written.
    pub file: FileKey,
    /// Number of bytes copied.
    pub copied: u64,
    /// Time since the request.
    pub age: Duration,
}

/// The seqid of a copy's stateid. It does not change, and is never zero (RFC 7862, 4.8).
const SEQID: u32 = 1;

impl Engine {
    /// Begins a copy into a file.
    ///
    /// # Errors
    /// [`Error::Resource`]: the client has reached its bound. [`Error::Expired`].
    pub fn begin_offload(
        &self,
        now: Duration,
        client: &Client,
        wanted: BeginOffload,
    ) -> Result<Stateid> {
        let mut state = client.live()?;
        let holdings = &mut state.holdings;
        holdings.offloads.forget(now.saturating_sub(self.settings.lease));
        if holdings.offloads.0.len() >= self.settings.limits.offloads_per_client {
            return Err(Error::Resource);
        }
        let number = holdings.number();
        let (copied, busy, cancelled, over, end) = (0, false, false, None, None);
        let offload = Offload { wanted, began: now, copied, busy, cancelled, over, end };
        holdings.offloads.0.insert(number, offload);
        Ok(Stateid::new(client.id, number, SEQID))
    }

    /// Forgets a copy: the client has acknowledged its end, or was never told of the copy.
    pub fn forget_offload(&self, client: &Client, stateid: &Stateid) {
        if let Ok(number) = self.offload_number(client, stateid) {
            client.state().holdings.offloads.0.remove(&number);
        }
    }

    /// Returns whether the next piece may be copied. It may not if the client has cancelled the
    /// copy or was forgotten, or its lease has expired. [`Engine::end_piece`] must follow.
    #[must_use]
    pub fn begin_piece(&self, now: Duration, client: &Client, stateid: &Stateid) -> bool {
        let (Ok(number), Ok(mut state)) = (self.offload_number(client, stateid), client.live())
        else {
            return false;
        };
        let offloads = &mut state.holdings.offloads;
        if self.has_expired(now, client) {
            offloads.0.remove(&number);
            return false;
        }
        let Some(offload) = offloads.0.get_mut(&number) else { return false };
        offload.busy = !offload.cancelled && offload.over.is_none();
        offload.busy
    }

    /// Notes that a piece was copied, and the total of bytes so far. With `end` it was the last
    /// piece.
    pub fn end_piece(
        &self,
        now: Duration,
        client: &Arc<Client>,
        stateid: &Stateid,
        copied: u64,
        end: Option<OffloadEnd>,
    ) {
        let Ok(number) = self.offload_number(client, stateid) else { return };
        let mut state = client.state();
        let Some(offload) = state.holdings.offloads.0.get_mut(&number) else { return };
        (offload.busy, offload.copied) = (false, copied);
        if offload.over.is_none() && (end.is_some() || offload.cancelled) {
            (offload.over, offload.end) = (Some(now), end);
        }
        // A client that has cancelled the copy gets no CB_OFFLOAD.
        if !offload.cancelled
            && let Some(effect) = offload.effect(client, number)
        {
            drop(state);
            self.effect_queue.push(effect);
        }
    }

    /// Returns the progress of a copy into a file. Any user of the client may ask: that changes
    /// nothing, and Linux asks as the user that opened the target, which may not be the user that
    /// requested the copy. A client that is refused takes the server for restarted.
    ///
    /// # Errors
    /// [`Error::BadStateid`]; [`Error::Expired`].
    pub fn offload_status(
        &self,
        client: &Client,
        file: &FileKey,
        stateid: &Stateid,
    ) -> Result<OffloadStatus> {
        let number = self.offload_number(client, stateid)?;
        let mut state = client.live()?;
        let offload = state.holdings.offloads.of(file, number)?;
        Ok(OffloadStatus { copied: offload.copied, end: offload.end })
    }

    /// Cancels a copy for the principal that requested it, for one that has opened the target, or
    /// for the client. Linux requests a copy as the user of the program, and cancels it as the user
    /// that opened the target.
    ///
    /// # Errors
    /// [`Error::BadStateid`]: there is no such copy that the caller may cancel. [`Error::Expired`].
    /// [`Error::Delay`]: a piece is being copied, so that the client must not write to the file
    /// yet.
    pub fn cancel_offload(
        &self,
        (client, caller): (&Client, &Caller),
        file: &FileKey,
        stateid: &Stateid,
    ) -> Result<()> {
        let number = self.offload_number(client, stateid)?;
        let mut state = client.live()?;
        let opened = self.files.get(file);
        let opened = opened.is_some_and(|it| has_opened(&state, (client, &it), caller.principal));
        let offload = state.holdings.offloads.of(file, number)?;
        let requested = offload.wanted.principal == caller.principal;
        if !requested && !opened && !client.is_principal(caller) {
            return Err(Error::BadStateid);
        }
        if offload.busy {
            offload.cancelled = true;
            return Err(Error::Delay);
        }
        state.holdings.offloads.0.remove(&number);
        Ok(())
    }

    /// Returns the CB_OFFLOADs of copies that ended within the last lease time and that the client
    /// has not acknowledged.
    #[must_use]
    pub fn offloads(&self, now: Duration, client: &Arc<Client>) -> Vec<Effect> {
        let since = now.saturating_sub(self.settings.lease);
        let mut state = client.state();
        let offloads = &mut state.holdings.offloads;
        offloads.forget(since);
        let told = offloads.0.iter().filter(|(_, offload)| !offload.cancelled);
        told.filter_map(|(number, offload)| offload.effect(client, *number)).collect()
    }

    /// Returns the copies of a client that are under way, the oldest first; for administrators.
    #[must_use]
    pub fn copies(&self, now: Duration, client: &Client) -> Vec<CopyUnderWay> {
        let state = client.state();
        let copies = state.holdings.offloads.0.iter().filter(|(_, offload)| offload.over.is_none());
        let mut copies: Vec<_> = copies.collect();
        copies.sort_unstable_by_key(|(number, offload)| (offload.began, **number));
        copies.into_iter().map(|(_, offload)| offload.under_way(now)).collect()
    }

    fn offload_number(&self, client: &Client, stateid: &Stateid) -> Result<u32> {
        match stateid.name() {
            Ok(name) if name.client == client.id && stateid.seqid == SEQID => Ok(name.number),
            _ => Err(Error::BadStateid),
        }
    }
}

impl Offload {
    fn under_way(&self, now: Duration) -> CopyUnderWay {
        let (file, copied) = (self.wanted.file, self.copied);
        CopyUnderWay { file, copied, age: now.saturating_sub(self.began) }
    }

    /// Returns the CB_OFFLOAD of the copy, if the copy has ended.
    fn effect(&self, client: &Arc<Client>, number: u32) -> Option<Effect> {
        let end = self.end?;
        let stateid = Stateid::new(client.id, number, SEQID);
        let (file, asked_by, copied) = (self.wanted.file, self.wanted.asked_by, self.copied);
        Some(Effect::Offload { client: Arc::clone(client), stateid, file, asked_by, copied, end })
    }
}
