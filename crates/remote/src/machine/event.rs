use crate::server_handle::ServerHandle;

/// Something that happened to state at the server, for whoever looks after opens and delegations:
/// [`comity_vfs::OpenEvent`] by the server's name of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateEvent {
    /// The server wants a delegation back.
    Recalled {
        /// The file.
        file: ServerHandle,
        /// True if the file is about to be cut to nothing.
        is_truncated: bool,
    },
    /// A delegation has ended without being returned.
    DelegationLost(ServerHandle),
    /// Opens or locks of a file were lost.
    StateLost(ServerHandle),
}
