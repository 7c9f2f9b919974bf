use crate::server_handle::ServerHandle;

/// A change of state at the server that the user of [`comity_vfs::OpenFiles`] must know:
/// [`comity_vfs::OpenEvent`] with the server's handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StateEvent {
    /// The server recalls a delegation.
    Recalled {
        /// The file.
        file: ServerHandle,
        /// True if the file is about to be truncated to 0 bytes.
        is_truncated: bool,
    },
    /// A delegation has ended without being returned.
    DelegationLost(ServerHandle),
    /// Opens or locks of a file were lost.
    StateLost(ServerHandle),
}
