use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use comity_vfs::Fs;

/// A data server of a placement, as the metadata server reaches it.
#[derive(Clone)]
pub struct DataServer {
    /// The name by which files say that they lie on it. It must stay the same.
    pub name: Box<str>,
    /// The address that clients are told.
    pub address: SocketAddr,
    /// The folder of its files. Its handles must hold the server's own handles whole, as
    /// [`comity_vfs::HandleTable`] makes them of short ones.
    pub fs: Arc<dyn Fs>,
}

impl fmt::Debug for DataServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataServer")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
