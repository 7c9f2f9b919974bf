//! The state of clients that another server is sending.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use comity_export::PeerServer;
use comity_migrate::CallFailure;
use comity_proto::migration::{MigrationId, SendArgs};
use comity_server::blocking;

/// Most bytes of the state of a volume.
const STATE_BYTES_MAX: usize = 256 << 20;

/// Time without a call of its source after which a transfer gives way to another one.
const TRANSFER_PATIENCE: Duration = Duration::from_secs(30);

const NO_TRANSFER: &str = "no such transfer is under way: begin again";

/// The state that a server is sending, and what was noted when it began.
struct Transfer<N> {
    from: Box<str>,
    id: MigrationId,
    state: Vec<u8>,
    last_call: Instant,
    note: N,
}

/// The transfer to this server. There is one at a time.
pub(crate) struct Transfers<N>(Mutex<Option<Transfer<N>>>);

impl<N> Transfers<N> {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// Begins a transfer, which replaces an earlier one of the same server, and one of another
    /// server that does not go on. `check` returns what is noted for its end.
    ///
    /// # Errors
    /// [`CallFailure`]: another server is sending state, or that of `check`.
    pub(crate) fn begin(
        &self,
        (from, id): (&PeerServer, MigrationId),
        check: impl FnOnce() -> Result<N, CallFailure>,
    ) -> Result<(), CallFailure> {
        let mut transfer = self.lock();
        let is_busy =
            |it: &Transfer<N>| it.from != from.name && it.last_call.elapsed() < TRANSFER_PATIENCE;
        if transfer.as_ref().is_some_and(is_busy) {
            return Err(CallFailure::at_present("another server is handing exports over to it"));
        }
        let (from, state, note) = (from.name.clone(), Vec::new(), check()?);
        *transfer = Some(Transfer { from, id, state, last_call: Instant::now(), note });
        Ok(())
    }

    /// Adds bytes to the state that a server transfers.
    ///
    /// # Errors
    /// [`CallFailure`], and the transfer has ended.
    pub(crate) fn receive(
        &self,
        from: &PeerServer,
        part: &SendArgs<'_>,
    ) -> Result<(), CallFailure> {
        let mut transfer = self.lock();
        let Some(it) = transfer.as_mut().filter(|it| it.is(from, &part.id)) else {
            return Err(CallFailure::at_present(NO_TRANSFER));
        };
        let fits = it.state.len() + part.bytes.0.len() <= STATE_BYTES_MAX;
        if fits && it.state.len() as u64 == part.offset {
            it.state.extend_from_slice(part.bytes.0);
            it.last_call = Instant::now();
            return Ok(());
        }
        *transfer = None;
        Err(CallFailure::invalid("the state is too long, or a part of it is missing"))
    }

    /// Ends a transfer, and completes its migration with the state that was sent. No other call
    /// about a transfer is answered meanwhile.
    ///
    /// # Errors
    /// [`CallFailure`]: there is no such transfer, or that of `complete`.
    pub(crate) fn take(
        &self,
        (from, id): (&PeerServer, &MigrationId),
        complete: impl FnOnce(&[u8], &N) -> Result<(), CallFailure>,
    ) -> Result<(), CallFailure> {
        let mut transfer = self.lock();
        match transfer.take_if(|it| it.is(from, id)) {
            Some(it) => blocking(|| complete(&it.state, &it.note)),
            None => Err(CallFailure::at_present(NO_TRANSFER)),
        }
    }

    /// Ends a transfer, so that its migration is never completed, and returns what `known` does
    /// then. If the migration is being completed, this waits for the end.
    pub(crate) fn end<T>(
        &self,
        (from, id): (&PeerServer, &MigrationId),
        known: impl FnOnce() -> T,
    ) -> T {
        let mut transfer = self.lock();
        transfer.take_if(|it| it.is(from, id));
        known()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Transfer<N>>> {
        blocking(|| self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<N> Transfer<N> {
    fn is(&self, from: &PeerServer, id: &MigrationId) -> bool {
        self.from == from.name && self.id == *id
    }
}
