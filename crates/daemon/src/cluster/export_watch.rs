//! Watches which head serves each export, and takes over those without a head.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use comity_export::{Export, Exports, Plan, Whereabouts};
use comity_nfs4::Memory;
use comity_server::LogRateLimit;
use comity_store::etcd::Etcd;

use super::export_table::ExportTable;
use super::head::Head;
use super::keys::{self, HeadRun};
use super::status::ClusterStatus;
use super::suitable::unsuitable;
use super::takeover::Takeover;
use crate::configuration::Reload;
use crate::state_service::each_second;

/// The parts of the server that a head needs.
#[derive(Clone)]
pub(crate) struct ClusterParts {
    pub(crate) head: Arc<Head>,
    pub(crate) table: Arc<ExportTable>,
    pub(crate) exports: Arc<Exports>,
    pub(crate) memory: Memory,
    pub(crate) reload: Arc<Reload>,
    pub(crate) status: Arc<ClusterStatus>,
}

impl ClusterParts {
    pub(crate) fn new(
        (head, table): (Arc<Head>, Arc<ExportTable>),
        (exports, memory): (&Arc<Exports>, Memory),
        reload: &Arc<Reload>,
    ) -> Self {
        let (exports, reload) = (Arc::clone(exports), Arc::clone(reload));
        Self { head, table, exports, memory, reload, status: Arc::default() }
    }

    /// Leaves the cluster. Nothing may be served any more. If calls are still under way (not
    /// `is_idle`), they may change files, so that the lease is left to end by itself.
    pub(crate) fn leave(&self, is_idle: bool) {
        if is_idle {
            self.head.leave();
        }
    }
}

/// The heads and the exports that they serve, as etcd has them.
#[derive(Debug, Clone, Default)]
pub(super) struct ClusterView {
    pub(super) heads: Vec<HeadRun>,
    pub(super) served: BTreeMap<PathBuf, HeadRun>,
}

impl ClusterView {
    fn read(etcd: &Etcd) -> Result<Self> {
        let heads = etcd.range(keys::HEADS)?;
        let served = etcd.range(&[keys::SERVED, keys::ROOT].concat())?;
        Ok(Self {
            heads: heads.iter().filter_map(|entry| HeadRun::read(&entry.value)).collect(),
            served: served.iter().filter_map(keys::read_served).collect(),
        })
    }

    fn is_up(&self, head: &str) -> bool {
        self.heads.iter().any(|it| it.name == head)
    }
}

/// The watch of the exports.
pub(crate) struct ExportWatch {
    parts: ClusterParts,
    begun: Instant,
    /// The exports without a head, and since when.
    headless: BTreeMap<PathBuf, Instant>,
}

impl ExportWatch {
    /// Looks at once, then each second, until what it returns is dropped.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub(crate) fn begin(parts: ClusterParts) -> Result<Sender<()>> {
        let begun = Instant::now();
        let mut watch = Self { parts, begun, headless: BTreeMap::new() };
        watch.pass();
        let thread = each_second("cluster", move || watch.pass());
        let (stop, _) = thread.context("cannot start the thread that watches the cluster")?;
        Ok(stop)
    }

    fn pass(&mut self) {
        static LOG: LogRateLimit = LogRateLimit::new();
        if let Err(error) = self.look() {
            LOG.say(|suppressed| tracing::warn!(suppressed, "{error:#}"));
        }
    }

    /// Puts each export where etcd says, takes those without a head, and ends due grace periods.
    fn look(&mut self) -> Result<()> {
        Takeover(&self.parts).end_graces()?;
        let view = ClusterView::read(&self.parts.head.etcd)?;
        let plan = Arc::clone(&self.parts.exports.current());
        self.note_headless(&view, &plan);
        let takeover = Takeover(&self.parts);
        let mut looked = Ok(());
        for export in plan.exports() {
            // An export that cannot be served must not keep others from it.
            looked = self.look_at(&takeover, (&view, &plan), export).and(looked);
        }
        self.parts.status.note(view);
        looked
    }

    fn look_at(
        &self,
        takeover: &Takeover<'_>,
        (view, plan): (&ClusterView, &Plan),
        export: &Export,
    ) -> Result<()> {
        let (path, home) = (export.path(), export.settings().home.as_deref());
        match view.served.get(path) {
            Some(at) if *at == self.parts.head.run => self.serve(takeover, path),
            Some(at) => self.place(path, Whereabouts::AtHost(at.name.as_str().into())),
            None if unsuitable(plan, export).is_some() => Ok(()),
            None if self.may_take(view, (path, home)) => takeover.take(path),
            None => self.place(path, Whereabouts::Moving),
        }
    }

    /// Serves an export that etcd says is here. It is served already, unless the answer of etcd to
    /// the take was lost.
    fn serve(&self, takeover: &Takeover<'_>, path: &Path) -> Result<()> {
        match self.parts.table.find(path) {
            Whereabouts::Here => Ok(()),
            _ => takeover.serve(path),
        }
    }

    /// Notes which exports have no head, and since when.
    fn note_headless(&mut self, view: &ClusterView, plan: &Plan) {
        let paths = plan.exports().iter().map(|export| export.path());
        let found = paths.filter(|path| !view.served.contains_key(*path)).map(|path| {
            let since = self.headless.get(path).copied().unwrap_or_else(Instant::now);
            (path.to_owned(), since)
        });
        self.headless = found.collect();
    }

    /// Returns whether this head takes an export without a head. The head that the option `home`
    /// names comes first. Others wait for it for the time of a lease after their own start; if it
    /// is up and does not take the export, for the time of a lease, too.
    fn may_take(&self, view: &ClusterView, (path, home): (&Path, Option<&str>)) -> bool {
        let length = self.parts.head.lease_length();
        let is_long_up = self.begun.elapsed() > length;
        let is_left = self.headless.get(path).is_some_and(|since| since.elapsed() > length);
        match home {
            Some(home) if home != self.parts.head.run.name => {
                is_long_up && (is_left || !view.is_up(home))
            }
            _ => true,
        }
    }

    /// Refers callers of an export to another head, or has them wait.
    fn place(&self, path: &Path, place: Whereabouts) -> Result<()> {
        if self.parts.table.find(path) == place {
            return Ok(());
        }
        let turn = self.parts.reload.turn();
        let loaded = turn.load(self.parts.table.finder_with(path, place.clone()));
        let paths = [path.to_owned()];
        let plan =
            self.parts.exports.current().adopting(&loaded.map_err(|why| anyhow!(why))?, &paths);
        self.parts.table.note(path, place.clone());
        turn.put_in_force(plan);
        tracing::info!(export = %path.display(), ?place, "the head of an export has changed");
        Ok(())
    }
}
