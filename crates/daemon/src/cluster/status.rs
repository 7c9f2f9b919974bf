//! The state of the cluster, for administrators and on the metrics page.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use comity_export::{Export, Whereabouts};
use comity_server::metrics::{append_numbers, append_ratios};
use serde_json::{Value, json};

use super::export_watch::{ClusterParts, ClusterView};

/// The state of the cluster when it was last read.
#[derive(Debug, Default)]
pub(crate) struct ClusterStatus {
    view: Mutex<Option<(ClusterView, Instant)>>,
    takeovers: AtomicU64,
}

impl ClusterStatus {
    pub(super) fn note(&self, view: ClusterView) {
        *self.view.lock().unwrap_or_else(PoisonError::into_inner) = Some((view, Instant::now()));
    }

    pub(super) fn count_takeover(&self) {
        self.takeovers.fetch_add(1, Ordering::Relaxed);
    }

    fn view(&self) -> (ClusterView, Option<u64>) {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        match &*view {
            Some((view, at)) => (view.clone(), Some(at.elapsed().as_secs())),
            None => (ClusterView::default(), None),
        }
    }
}

impl ClusterParts {
    /// Returns the heads and the exports that each of them serves.
    pub(crate) fn status_json(&self) -> Value {
        let (view, age) = self.status.view();
        let plan = self.exports.current();
        let exports: Vec<Value> =
            plan.exports().iter().map(|export| self.export_json(&view, export)).collect();
        let heads = view.heads.iter().map(|it| json!({ "head": it.name, "run": it.run }));
        json!({
            "head": self.head.run.name,
            "run": self.head.run.run,
            "etcd": self.head.etcd.name(),
            "lease_left_seconds": self.head.lease.left().as_secs(),
            "seen_seconds_ago": age,
            "heads": heads.collect::<Vec<_>>(),
            "exports": exports,
        })
    }

    fn export_json(&self, view: &ClusterView, export: &Export) -> Value {
        let path = export.path();
        json!({
            "export": path.display().to_string(),
            "head": view.served.get(path).map(|at| &at.name),
            "home": export.settings().home,
            "is_served_here": self.table.find(path) == Whereabouts::Here,
            "grace_left_seconds": self.grace_left_seconds(export),
        })
    }

    fn grace_left_seconds(&self, export: &Export) -> Option<u64> {
        let graces = self.memory.engine.export_graces(self.memory.clock.now());
        let (_, left) = graces.into_iter().find(|(id, _)| *id == export.id().0)?;
        Some(left.as_secs())
    }
}

/// Appends the numbers of the cluster.
pub(crate) fn append_cluster(text: &mut String, parts: &ClusterParts) {
    let (view, _) = parts.status.view();
    let plan = parts.exports.current();
    let label = |export: &Export| [("export", export.path().display().to_string())];
    let lease = parts.head.lease.left().as_secs();
    append_numbers(
        text,
        &[
            ("comity_cluster_heads", "Heads that have a lease.", view.heads.len() as u64),
            ("comity_cluster_lease_left_seconds", "Time that the lease of this head has.", lease),
            (
                "comity_cluster_takeovers_total",
                "Exports that this head has begun to serve.",
                parts.status.takeovers.load(Ordering::Relaxed),
            ),
        ],
    );
    let here = |export: &Export| f64::from(parts.table.find(export.path()) == Whereabouts::Here);
    let rows: Vec<_> = plan.exports().iter().map(|it| (label(it), here(it))).collect();
    let help = "1 if this head serves the export.";
    let name = "comity_cluster_is_served_here";
    append_ratios(text, name, help, rows.iter().map(|(labels, is)| (&labels[..], *is)));
}
