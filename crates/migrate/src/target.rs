use comity_export::PeerServer;
use comity_proto::migration::{MigrationArgs, MigrationId, SendArgs, Status};

/// The server to which exports are moved.
pub trait MigrationTarget: Send + Sync {
    /// Checks that these exports can be taken over from a peer, and begins a transfer. It replaces
    /// an earlier transfer of that peer, and one of another peer that does not go on.
    ///
    /// # Errors
    /// [`MigrationRefusal`]; nothing was begun then.
    fn offer(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), MigrationRefusal>;

    /// Adds bytes to the state that a peer transfers.
    ///
    /// # Errors
    /// [`MigrationRefusal`], and the transfer has ended.
    fn receive(&self, from: &PeerServer, part: &SendArgs<'_>) -> Result<(), MigrationRefusal>;

    /// Takes the exports over: once this returns, they are served here, also after a restart.
    ///
    /// # Errors
    /// [`MigrationRefusal`]; they are not served here then, and the transfer has ended.
    fn take(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), MigrationRefusal>;

    /// Returns whether a migration was completed. If it was not, its transfer is ended, so that it
    /// never will be.
    fn outcome(&self, from: &PeerServer, id: &MigrationId) -> bool;
}

/// The reason why a target refuses a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MigrationRefusal {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl MigrationRefusal {
    /// The exports cannot be taken over as the two servers are configured.
    pub fn invalid(text: impl ToString) -> Self {
        Self { status: Status::Invalid, text: text.to_string() }
    }

    /// The exports cannot be taken over at present.
    pub fn at_present(text: impl ToString) -> Self {
        Self { status: Status::Full, text: text.to_string() }
    }

    /// The target failed.
    pub fn fault(text: impl ToString) -> Self {
        Self { status: Status::Fault, text: text.to_string() }
    }
}
