mod trouble;

use std::net::SocketAddr;
use std::sync::Arc;

use comity_export::{Exports, Visitor};
use comity_nfs3::{Mount, Nfs3};
use comity_rpc::{Dispatcher, Line, Program};
use comity_server::Service;
use comity_server::metrics::{Measured, Metrics};

use self::trouble::Troubled;
use crate::statuses;

/// The programs of this server: NFS version 3 and MOUNT.
pub(crate) struct Programs(Dispatcher<Visitor>);

impl Programs {
    /// Serves `exports`, and counts in `metrics` if somebody wants to know. The verifier tells
    /// clients of a server's life in which uncommitted data may have been lost.
    pub(crate) fn new(
        exports: &Arc<Exports>,
        verifier: [u8; 8],
        metrics: Option<&Arc<Metrics>>,
    ) -> Self {
        let nfs = Nfs3::new(Arc::clone(exports), verifier);
        let nfs = Troubled::new(nfs, Arc::clone(exports));
        let mount = Mount::new(Arc::clone(exports));
        let programs = vec![counted(nfs, "nfs", metrics), counted(mount, "mount", metrics)];
        Self(Dispatcher::new(programs))
    }
}

fn counted(
    program: impl Program<Visitor> + 'static,
    name: &'static str,
    metrics: Option<&Arc<Metrics>>,
) -> Arc<dyn Program<Visitor>> {
    match metrics {
        Some(metrics) => Arc::new(Measured::new(program, name, statuses::name, metrics)),
        None => Arc::new(program),
    }
}

impl Service for Programs {
    type Visitor = Visitor;

    fn visitor(&self, peer: SocketAddr, line: &Arc<Line>) -> Visitor {
        Visitor::on(peer, line)
    }

    fn dispatcher(&self) -> &Dispatcher<Visitor> {
        &self.0
    }
}
