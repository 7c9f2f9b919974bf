use comity_export::PeerServer;
use comity_programs::CallFailure;
use comity_proto::migration::{LoadReply, MigrationArgs, MigrationId, SendArgs};

/// The server to which exports are moved.
pub trait MigrationTarget: Send + Sync {
    /// Checks that these exports can be taken over from a peer, and begins a transfer. It replaces
    /// an earlier transfer of that peer, and one of another peer that does not go on.
    ///
    /// # Errors
    /// [`CallFailure`]; nothing was begun then.
    fn offer(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), CallFailure>;

    /// Adds bytes to the state that a peer transfers.
    ///
    /// # Errors
    /// [`CallFailure`], and the transfer has ended.
    fn receive(&self, from: &PeerServer, part: &SendArgs<'_>) -> Result<(), CallFailure>;

    /// Takes the exports over: once this returns, they are served here, also after a restart.
    ///
    /// # Errors
    /// [`CallFailure`]; they are not served here then, and the transfer has ended.
    fn take(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), CallFailure>;

    /// Returns the load of this server.
    fn load(&self) -> LoadReply;

    /// Returns whether a migration was completed. If it was not, its transfer is ended, so that it
    /// never will be.
    fn outcome(&self, from: &PeerServer, id: &MigrationId) -> bool;
}
