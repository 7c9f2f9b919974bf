//! The metrics page: its contents, and its start.

use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use comity_export::{ExportId, Exports};
use comity_grants::Grants;
use comity_nfs4::{Memory, OperationCounters};
use comity_server::metrics::{Metrics, serve_metrics};
use comity_server::{HttpService, ServerStats};
use comity_store::Store;

use crate::cluster::{ClusterParts, append_cluster};
use crate::load::{self, Load};
use crate::metrics;

/// The parts of the server whose statistics are on the page.
pub(crate) struct PageSources {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) exports: Arc<Exports>,
    pub(crate) memory: Memory,
    pub(crate) store: Arc<Store>,
    pub(crate) grants: Arc<Grants>,
    /// Counts of the operations of NFSv4, if that version is enabled.
    pub(crate) operations: Option<Arc<OperationCounters>>,
    pub(crate) load: Arc<Mutex<Load>>,
    /// The cluster, if the server is a head of one.
    pub(crate) cluster: Option<ClusterParts>,
}

impl PageSources {
    /// Serves the page at a listening socket; `stats` returns the statistics of the server.
    ///
    /// # Errors
    /// The system refused a thread or its resources.
    pub(crate) fn serve(
        self,
        listener: TcpListener,
        stats: impl Fn() -> ServerStats + Send + Sync + 'static,
    ) -> io::Result<HttpService> {
        serve_metrics(listener, move || self.text(&stats()))
    }

    fn text(&self, stats: &ServerStats) -> String {
        let mut text = self.metrics.render(stats, &|id| self.path_of(id));
        metrics::append(&mut text, &self.exports);
        metrics::append_state(&mut text, &self.memory);
        metrics::append_store(&mut text, &self.store);
        metrics::append_grants(&mut text, &self.grants.counts());
        self.operations
            .iter()
            .for_each(|operations| metrics::append_operations(&mut text, operations));
        load::append(&mut text, &self.load);
        self.cluster.iter().for_each(|cluster| append_cluster(&mut text, cluster));
        text
    }

    fn path_of(&self, id: u32) -> Option<String> {
        let plan = self.exports.current();
        Some(plan.export(ExportId(id))?.path().display().to_string())
    }
}
