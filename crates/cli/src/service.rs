use std::net::SocketAddr;
use std::sync::Arc;

use comity_export::{Exports, Visitor};
use comity_nfs3::{Mount, Nfs3};
use comity_rpc::{Dispatcher, Program};
use comity_server::Service;

/// The programs of this server: NFS version 3 and MOUNT.
pub(crate) struct Programs(Dispatcher<Visitor>);

impl Programs {
    /// Serves `exports`. The verifier tells clients of a server's life in which uncommitted data may
    /// have been lost.
    pub(crate) fn new(exports: &Arc<Exports>, verifier: [u8; 8]) -> Self {
        let nfs: Arc<dyn Program<Visitor>> = Arc::new(Nfs3::new(Arc::clone(exports), verifier));
        let mount = Arc::new(Mount::new(Arc::clone(exports)));
        Self(Dispatcher::new(vec![nfs, mount]))
    }
}

impl Service for Programs {
    type Visitor = Visitor;

    fn visitor(&self, peer: SocketAddr) -> Visitor {
        Visitor::new(peer)
    }

    fn dispatcher(&self) -> &Dispatcher<Visitor> {
        &self.0
    }
}
