//! Watches which head serves each export, and takes over those without a head.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use comity_export::{Export, Exports, Plan, Whereabouts};
use comity_nfs4::Memory;
use comity_server::LogRateLimit;
use comity_store::etcd::Etcd;

use super::addresses;
use super::drained_heads::DrainedHeads;
use super::endpoint::{Endpoints, HeadEndpoint};
use super::export_table::ExportTable;
use super::head::Head;
use super::keys::{self, HeadRun};
use super::move_notes::MoveNotes;
use super::status::ClusterStatus;
use super::suitable::unsuitable;
use super::takeover::Takeover;
use crate::configuration::{PlanTurn, Reload};
use crate::migration::LOCAL_LOCKS;
use crate::statd::Notification;
use crate::state_service::each_second;
use crate::tls::Tls;

/// Lengths of a lease for which other heads that are up may leave an export without a head until a
/// drained head takes it.
const REFUSED_LENGTHS: u32 = 4;

/// The parts of the server that a head needs.
#[derive(Clone)]
pub(crate) struct ClusterParts {
    pub(crate) head: Arc<Head>,
    pub(crate) table: Arc<ExportTable>,
    pub(crate) exports: Arc<Exports>,
    pub(crate) memory: Memory,
    pub(crate) reload: Arc<Reload>,
    pub(crate) status: Arc<ClusterStatus>,
    /// The notification of NFSv3 hosts that this server has restarted.
    pub(crate) news: Notification,
    pub(super) notes: Arc<MoveNotes>,
    place: HeadPlace,
    /// The reason why no export moves from or to this head, if there is one.
    pub(super) moves_refusal: Option<&'static str>,
}

/// The place at which other heads reach this one.
#[derive(Clone)]
pub(crate) struct HeadPlace {
    /// The addresses at which the server listens.
    pub(crate) listening: Vec<SocketAddr>,
    pub(crate) tls: Option<Arc<Tls>>,
}

impl ClusterParts {
    /// Makes the parts. With `local_locks` the server shares locks with local programs.
    pub(crate) fn new(
        (head, table): (Arc<Head>, Arc<ExportTable>),
        (exports, memory): (&Arc<Exports>, Memory),
        (reload, news): (&Arc<Reload>, Notification),
        (place, local_locks): (HeadPlace, bool),
    ) -> Self {
        let (exports, reload) = (Arc::clone(exports), Arc::clone(reload));
        let (status, notes) = (Arc::default(), Arc::default());
        let moves_refusal = local_locks.then_some(LOCAL_LOCKS);
        Self { head, table, exports, memory, reload, status, notes, news, place, moves_refusal }
    }

    /// Returns the right to replace the plan; `None` if a move or a reload has it, or if there were
    /// more moves than `moves`, so that what was read from etcd before may be wrong. It does not
    /// wait: a move waits until nobody uses the plan.
    pub(super) fn turn_after(&self, moves: u64) -> Option<PlanTurn<'_>> {
        let turn = self.reload.try_turn()?;
        (self.notes.count() == moves).then_some(turn)
    }

    /// Reads the state of the cluster after a move, so that it is shown at once.
    pub(super) fn look_again(&self) {
        let begun = Instant::now();
        match ClusterView::read(&self.head.etcd) {
            Ok(view) => self.status.note(view, begun),
            Err(error) => tracing::warn!("the state of the cluster is not shown yet: {error:#}"),
        }
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
    /// The heads that have the addresses of exports.
    pub(super) addresses: BTreeMap<IpAddr, HeadRun>,
    pub(super) endpoints: Vec<HeadEndpoint>,
    pub(super) drained: DrainedHeads,
}

impl ClusterView {
    /// Reads it. The exports are read after the addresses: a move changes both, and an address that
    /// is seen at its new head must not be without its exports. They are read after the drained
    /// heads, too, since such a head takes no export from the time of its mark on.
    pub(super) fn read(etcd: &Etcd) -> Result<Self> {
        let drained = etcd.range(keys::DRAINED)?;
        let endpoints = etcd.range(keys::ENDPOINTS)?;
        let heads = etcd.range(keys::HEADS)?;
        let addresses = etcd.range(keys::ADDRESSES)?;
        let served = etcd.range(&[keys::SERVED, keys::ROOT].concat())?;
        Ok(Self {
            heads: heads.iter().filter_map(|entry| HeadRun::read(&entry.value)).collect(),
            served: served.iter().filter_map(keys::read_served).collect(),
            addresses: addresses.iter().filter_map(keys::read_address).collect(),
            endpoints: endpoints.iter().filter_map(HeadEndpoint::read).collect(),
            drained: DrainedHeads::read(&drained),
        })
    }

    pub(super) fn is_up(&self, head: &str) -> bool {
        self.heads.iter().any(|it| it.name == head)
    }
}

/// The watch of the exports.
pub(crate) struct ExportWatch {
    parts: ClusterParts,
    begun: Instant,
    /// The exports without a head, and since when.
    headless: BTreeMap<PathBuf, Instant>,
    endpoints: Endpoints,
    is_drained: bool,
}

impl ExportWatch {
    /// Looks at once, then each second, until what it returns is dropped.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub(crate) fn begin(parts: ClusterParts) -> Result<Sender<()>> {
        let begun = Instant::now();
        let (headless, endpoints, is_drained) = Default::default();
        let mut watch = Self { parts, begun, headless, endpoints, is_drained };
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
        let moves = self.parts.notes.count();
        let begun = Instant::now();
        let view = ClusterView::read(&self.parts.head.etcd)?;
        let plan = Arc::clone(&self.parts.exports.current());
        self.follow_endpoints(&view)?;
        addresses::follow(&self.parts.head, (&view, &plan))?;
        self.note_headless(&view, &plan);
        self.note_drained(view.drained.contains(&self.parts.head.run.name));
        let takeover = Takeover(&self.parts);
        let mut looked = Ok(());
        for export in plan.exports() {
            // An export that cannot be served must not keep others from it.
            looked = self.look_at((&takeover, moves), (&view, &plan), export).and(looked);
        }
        self.parts.status.note(view, begun);
        looked
    }

    fn look_at(
        &self,
        (takeover, moves): (&Takeover<'_>, u64),
        (view, plan): (&ClusterView, &Plan),
        export: &Export,
    ) -> Result<()> {
        let path = export.path();
        match view.served.get(path) {
            Some(at) if *at == self.parts.head.run => self.serve((takeover, moves), path),
            Some(at) => {
                self.place((path, view.place_of(export, (at, &self.parts.head.run))), moves)
            }
            None if unsuitable(plan, export).is_some() => Ok(()),
            None if self.may_take((view, plan), export) => {
                takeover.take(path, (moves, self.is_drained))
            }
            None => self.place((path, Whereabouts::Moving), moves),
        }
    }

    /// Serves an export that etcd says is here. It is served already, unless the answer of etcd to
    /// the take was lost.
    fn serve(&self, (takeover, moves): (&Takeover<'_>, u64), path: &Path) -> Result<()> {
        match self.parts.table.find(path) {
            Whereabouts::Here => Ok(()),
            _ => takeover.serve(path, moves),
        }
    }

    fn follow_endpoints(&mut self, view: &ClusterView) -> Result<()> {
        let ClusterParts { head, exports, place, .. } = &self.parts;
        let own = HeadEndpoint::of(&head.run, &place.listening, place.tls.as_deref());
        self.endpoints.follow((head, exports), own, &view.endpoints)
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

    /// Notes whether this head is drained, and logs a change.
    fn note_drained(&mut self, is_drained: bool) {
        match (std::mem::replace(&mut self.is_drained, is_drained), is_drained) {
            (false, true) => tracing::info!("this head is drained: its exports move to others"),
            (true, false) => tracing::info!("this head is not drained any more"),
            _ => {}
        }
    }

    /// Returns whether this head takes an export without a head. The head that the option `home`
    /// names comes first. Others wait for it for the time of a lease after their own start; if it
    /// is up and does not take the export, for the time of a lease, too. If the address of the
    /// export has a head, only that one takes the export.
    ///
    /// A drained head takes an export only if no other head could: clients that wait for a head
    /// that is forgotten in this state are worse off than those that have to move once more. It
    /// gives others the time of a lease, and a multiple of that if they are up but do not take it.
    fn may_take(&self, (view, plan): (&ClusterView, &Plan), export: &Export) -> bool {
        let (path, length) = (export.path(), self.parts.head.lease_length());
        let own = &self.parts.head.run;
        if let Some(at) = view.head_of_address(export) {
            // The exports with this address move together, and none of them without a head.
            return at == own && (!self.is_drained || view.has_others_here(own, (plan, export)));
        }
        let is_long_up = self.begun.elapsed() > length;
        let is_left = self.headless.get(path).is_some_and(|since| since.elapsed() > length);
        if self.is_drained {
            let is_refused = |since: &Instant| since.elapsed() > length * REFUSED_LENGTHS;
            let is_refused = self.headless.get(path).is_some_and(is_refused);
            return is_left && (is_refused || view.undrained().next().is_none());
        }
        match export.settings().home.as_deref() {
            Some(home) if home != own.name && !view.drained.contains(home) => {
                is_long_up && (is_left || !view.is_up(home))
            }
            _ => true,
        }
    }

    /// Refers callers of an export to another head, or has them wait.
    fn place(&self, (path, place): (&Path, Whereabouts), moves: u64) -> Result<()> {
        if self.parts.table.find(path) == place {
            return Ok(());
        }
        let Some(turn) = self.parts.turn_after(moves) else { return Ok(()) };
        let paths = [path.to_owned()];
        let loaded = turn.load(self.parts.table.finder_with(&paths, place.clone()));
        let plan =
            self.parts.exports.current().adopting(&loaded.map_err(|why| anyhow!(why))?, &paths);
        self.parts.table.note(path, place.clone());
        turn.put_in_force(plan);
        tracing::info!(export = %path.display(), ?place, "the head of an export has changed");
        Ok(())
    }
}
