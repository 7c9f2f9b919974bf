//! A client is told that its leases have moved to another server (RFC 8881, 11.11.1 and 18.46.3).

use super::Client;
use crate::StatusFlags;
use crate::client_state::ClientState;
use crate::sync::atomic::Ordering;

impl Client {
    /// Returns whether the client has still to hear that an export has moved with state of it
    /// ([`crate::Engine::forget_volume`]). The cost is one atomic load.
    #[must_use]
    pub fn has_moved_lease(&self) -> bool {
        self.lease_moved.load(Ordering::Acquire)
    }

    /// Notes that the client has asked where an export is that has moved: GETATTR of `fs_locations`
    /// at the absent file system (RFC 8881, 18.46.3). In minor version 0 a RENEW in the same
    /// COMPOUND names the client.
    pub fn knows_place(&self, export: u32) {
        if self.has_moved_lease() {
            let mut state = self.state();
            state.moved.know(export);
            self.note_moved(&state);
        }
    }

    /// Notes whether the client has to hear of a move.
    pub(crate) fn note_moved(&self, state: &ClientState) {
        self.lease_moved.store(!state.moved.is_empty(), Ordering::Release);
    }

    /// Returns the flag by which SEQUENCE tells the client that a lease has moved.
    pub(crate) fn tell_moved(&self) -> StatusFlags {
        StatusFlags::LEASE_MOVED.when(self.has_moved_lease())
    }
}
