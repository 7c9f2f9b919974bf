//! The state of the cluster, for administrators and on the metrics page.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use comity_export::{Export, Whereabouts};
use comity_server::metrics::{append_numbers, append_ratios};
use serde_json::{Value, json};

use super::export_watch::{ClusterParts, ClusterView};
use super::keys::HeadRun;

/// The state of the cluster when it was last read.
#[derive(Debug, Default)]
pub(crate) struct ClusterStatus {
    view: Mutex<Option<(Arc<ClusterView>, Instant)>>,
    takeovers: AtomicU64,
}

impl ClusterStatus {
    /// Notes a view whose reading began at that time, unless a later one is known.
    pub(super) fn note(&self, view: Arc<ClusterView>, begun: Instant) {
        let mut known = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        if known.as_ref().is_none_or(|(_, earlier)| *earlier <= begun) {
            *known = Some((view, begun));
        }
    }

    /// Counts a takeover; returns how many there were before.
    pub(super) fn count_takeover(&self) -> u64 {
        self.takeovers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns whether a head was drained when etcd was last read.
    pub(super) fn is_drained(&self, head: &str) -> bool {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        view.as_ref().is_some_and(|(view, _)| view.drained.contains(head))
    }

    fn view(&self) -> (Arc<ClusterView>, Option<u64>) {
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner);
        match &*view {
            Some((view, at)) => (Arc::clone(view), Some(at.elapsed().as_secs())),
            None => (Arc::default(), None),
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
        let heads = view.heads.iter().map(|head| head_json(&view, head));
        json!({
            "head": self.head.run.name,
            "run": self.head.run.run,
            "etcd": self.head.etcd.name(),
            "lease_left_seconds": self.head.lease.left().as_secs(),
            "seen_seconds_ago": age,
            "heads": heads.collect::<Vec<_>>(),
            "drained": view.drained.heads,
            "exports": exports,
            "addresses": view.addresses_json((&plan, &self.head.run)),
        })
    }

    fn export_json(&self, view: &ClusterView, export: &Export) -> Value {
        let path = export.path();
        json!({
            "export": path.display().to_string(),
            "head": view.served.get(path).map(|at| &at.name),
            "home": export.settings().home,
            "address": export.settings().address,
            "is_served_here": self.table.find(path) == Whereabouts::Here,
            "stays_because": view.served.get(path).and_then(|at| view.drained.reason(at, path)),
            "grace_left_seconds": self.grace_left_seconds(export),
        })
    }

    fn grace_left_seconds(&self, export: &Export) -> Option<u64> {
        let graces = self.memory.engine.export_graces(self.memory.clock.now());
        let (_, left) = graces.into_iter().find(|(id, _)| *id == export.id().0)?;
        Some(left.as_secs())
    }
}

fn head_json(view: &ClusterView, head: &HeadRun) -> Value {
    json!({
        "head": head.name,
        "run": head.run,
        "is_drained": view.drained.contains(&head.name),
        "exports": view.exports_of(head),
    })
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
    append_drained(text, &view);
}

fn append_drained(text: &mut String, view: &ClusterView) {
    let is_drained = |head: &HeadRun| f64::from(view.drained.contains(&head.name));
    let row = |head: &HeadRun| ([("head", head.name.clone())], is_drained(head));
    let rows: Vec<_> = view.heads.iter().map(row).collect();
    let (name, help) = ("comity_cluster_is_drained", "1 if the head is drained.");
    append_ratios(text, name, help, rows.iter().map(|(labels, is)| (&labels[..], *is)));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look at all exports may take long, and a command may have read etcd meanwhile.
    #[test]
    fn an_earlier_view_does_not_replace_a_later_one() {
        let (status, earlier, later) = (ClusterStatus::default(), Instant::now(), Instant::now());
        let head = HeadRun { name: "a".to_owned(), run: "1".to_owned() };
        let view = ClusterView { heads: vec![head.clone()], ..ClusterView::default() };
        status.note(Arc::new(view), later);
        status.note(Arc::default(), earlier);
        assert_eq!(status.view().0.heads, [head]);
        status.note(Arc::default(), Instant::now());
        assert!(status.view().0.heads.is_empty());
    }
}
