use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use comity_vfs::{DataServerState, Fs, Handle, LinkState, Result};

/// A data server of a placement, as the metadata server uses it.
#[derive(Clone)]
pub struct DataServer {
    /// The name by which files refer to the data server. It must not change.
    pub name: Box<str>,
    /// The address that clients are given.
    pub address: SocketAddr,
    /// The path that it exports, if it is a stock server.
    pub path: Option<Box<str>>,
    /// True if it takes no new files, and its files are to be moved to the others.
    pub is_draining: bool,
    /// Gives access to its files.
    pub files: Arc<dyn ReachFiles>,
}

/// Gives access to the folder of a data server, which may not be up yet.
pub trait ReachFiles: Send + Sync {
    /// Returns the folder.
    ///
    /// # Errors
    /// [`Status::Delay`](comity_vfs::Status::Delay): the data server was not reached yet.
    fn reach(&self) -> Result<Arc<dyn Fs>>;

    /// Returns the data server's own handle of a file in the folder.
    ///
    /// # Errors
    /// [`Status::Stale`](comity_vfs::Status::Stale): it is not known any more, until the file is
    /// looked up again.
    fn server_handle(&self, file: &Handle) -> Result<Box<[u8]>>;

    /// Returns whether the data server answers, and since when.
    fn state(&self) -> LinkState;
}

impl DataServer {
    /// The state of the data server, where this number of files has a broken mirror.
    pub(crate) fn state(&self, broken_files: u64) -> DataServerState {
        let (name, address) = (self.name.clone(), self.address);
        let (path, is_draining, link) = (self.path.clone(), self.is_draining, self.files.state());
        DataServerState { name, address, path, is_draining, link, broken_files }
    }
}

impl PartialEq for DataServer {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.address == other.address
            && self.path == other.path
            && self.is_draining == other.is_draining
            && Arc::ptr_eq(&self.files, &other.files)
    }
}

impl fmt::Debug for DataServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DataServer")
            .field("name", &self.name)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
