use comity_export::PeerServer;
use comity_proto::migration::{MigrationArgs, MigrationId, SendArgs, Status};

/// The server to which exports are moved.
pub trait Target: Send + Sync {
    /// Checks that these exports can be taken over from a peer, and begins a transfer. It replaces
    /// an earlier transfer of that peer, and one of another peer that does not go on.
    ///
    /// # Errors
    /// [`Refused`]; nothing was begun then.
    fn offer(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), Refused>;

    /// Adds bytes to the state that a peer transfers.
    ///
    /// # Errors
    /// [`Refused`], and the transfer has ended.
    fn receive(&self, from: &PeerServer, part: &SendArgs<'_>) -> Result<(), Refused>;

    /// Takes the exports over: once this returns, they are served here, also after a restart.
    ///
    /// # Errors
    /// [`Refused`]; they are not served here then, and the transfer has ended.
    fn take(&self, from: &PeerServer, offer: &MigrationArgs<'_>) -> Result<(), Refused>;

    /// Returns whether a migration was completed. If it was not, its transfer is ended, so that it
    /// never will be.
    fn outcome(&self, from: &PeerServer, id: &MigrationId) -> bool;
}

/// The reason why a target refuses a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Refused {
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
