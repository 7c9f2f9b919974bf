//! The end of a move: clients are told no more that their leases are at another server.

use super::moving_files::MovingFiles;
use crate::Engine;

impl Engine {
    /// Ends telling clients that their leases of files have moved. The files have come back
    /// ([`Engine::import_volume`] calls it), or no referral says any more where they are, so that
    /// no client could ask.
    pub fn end_move(&self, moving: impl Into<MovingFiles>) {
        let moving = moving.into();
        for client in self.clients.all().into_iter().filter(|client| client.has_moved_lease()) {
            let mut state = client.state();
            state.moved.end(|volume, exports| moving.meets(volume, exports));
            client.note_moved(&state);
        }
    }
}
