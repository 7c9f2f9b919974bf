//! The end of a move: clients are told no more that their leases are at another server.

use crate::Engine;

impl Engine {
    /// Ends telling clients that their leases of a volume have moved. The volume has come back
    /// ([`Engine::import_volume`] calls it), or no referral says any more where it is, so that no
    /// client could ask.
    pub fn end_move(&self, volume: u64) {
        for client in self.clients.all().into_iter().filter(|client| client.has_moved_lease()) {
            let mut state = client.state();
            state.moved.end(volume);
            client.note_moved(&state);
        }
    }
}
