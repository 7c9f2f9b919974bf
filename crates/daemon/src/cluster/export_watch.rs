//! Watches which head serves each export, and takes over those without a head.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use anyhow::{Context, Result, anyhow};
use comity_export::{Export, Exports, Plan, Whereabouts};
use comity_heads::{AddressHead, HeadlessExport, HomeHead, OwnHead, Succession};
use comity_nfs4::Memory;
use comity_server::LogRateLimit;

use super::addresses;
use super::drained_heads::DrainedHeads;
use super::endpoint::{Endpoints, HeadEndpoint};
use super::export_table::ExportTable;
use super::head::Head;
use super::keys::HeadRun;
use super::leftover_runs::LeftoverRuns;
use super::move_notes::MoveNotes;
use super::status::ClusterStatus;
use super::suitable::unsuitable;
use super::takeover::Takeover;
use super::view_reader::ViewReader;
use crate::configuration::{PlanTurn, Reload};
use crate::migration::LOCAL_LOCKS;
use crate::statd::Notification;
use crate::state_service::each_second;
use crate::tls::Tls;

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
    pub(super) leftovers: Arc<LeftoverRuns>,
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
        let (status, notes, leftovers) = Default::default();
        let moves_refusal = local_locks.then_some(LOCAL_LOCKS);
        Self {
            head,
            table,
            exports,
            memory,
            reload,
            status,
            notes,
            leftovers,
            news,
            place,
            moves_refusal,
        }
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
            Ok(view) => self.status.note(Arc::new(view), begun),
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
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ClusterView {
    pub(super) heads: Vec<HeadRun>,
    pub(super) served: BTreeMap<PathBuf, HeadRun>,
    /// The heads that have the addresses of exports.
    pub(super) addresses: BTreeMap<IpAddr, HeadRun>,
    pub(super) endpoints: Vec<HeadEndpoint>,
    pub(super) drained: DrainedHeads,
}

impl ClusterView {
    pub(super) fn is_up(&self, head: &str) -> bool {
        self.heads.iter().any(|it| it.name == head)
    }
}

/// The watch of the exports.
pub(crate) struct ExportWatch {
    parts: ClusterParts,
    reader: ViewReader,
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
        let (reader, headless, endpoints, is_drained) = Default::default();
        let mut watch = Self { parts, reader, begun, headless, endpoints, is_drained };
        watch.pass();
        let thread = each_second("cluster", move || watch.pass());
        let (stop, _) = thread.context("cannot start the thread that watches the cluster")?;
        Ok(stop)
    }

    fn pass(&mut self) {
        static LOG: LogRateLimit = LogRateLimit::new();
        loop {
            match self.look() {
                Ok(true) => return,
                Ok(false) => {}
                Err(error) => {
                    LOG.say(|suppressed| tracing::warn!(suppressed, "{error:#}"));
                    return;
                }
            }
        }
    }

    /// Puts each export where etcd says, takes those without a head, and ends due grace periods.
    /// Returns whether this head has tried all exports that it may take.
    fn look(&mut self) -> Result<bool> {
        Takeover(&self.parts).end_graces()?;
        let moves = self.parts.notes.count();
        let begun = Instant::now();
        let view = self.reader.read(&self.parts.head.etcd)?;
        let plan = Arc::clone(&self.parts.exports.current());
        self.follow_endpoints(&view)?;
        addresses::follow(&self.parts.head, (&view, &plan))?;
        self.note_headless(&view, &plan);
        self.note_drained(view.drained.contains(&self.parts.head.run.name));
        let tasks = self.tasks(&view, &plan);
        let takeover = Takeover(&self.parts);
        let mut served = Ok(());
        for path in &tasks.served {
            // An export that cannot be served must not keep others from it.
            served = takeover.serve(path, moves).and(served);
        }
        let taken = takeover.take_all(&tasks.taken, (moves, self.is_drained));
        let placed = self.place_all(&tasks.placed, moves);
        if let Err(error) = self.parts.leftovers.remove(&self.parts.head, &view) {
            tracing::warn!("records of earlier heads stay in etcd: {error:#}");
        }
        self.parts.status.note(view, begun);
        served.and(placed).and(taken)
    }

    /// Returns what is to be done about the exports.
    fn tasks(&self, view: &ClusterView, plan: &Plan) -> Tasks {
        let (mut tasks, own) = (Tasks::default(), &self.parts.head.run);
        for export in plan.exports() {
            let path = export.path();
            let known = self.parts.table.find(path);
            let place = match view.served.get(path) {
                Some(at) if at == own => {
                    // It is served already, unless the answer of etcd to the take was lost.
                    if known != Whereabouts::Here {
                        tasks.served.push(path.to_owned());
                    }
                    continue;
                }
                Some(at) => view.place_of(export, (at, own)),
                None if unsuitable(plan, export).is_some() => continue,
                None if self.may_take((view, plan), export) => {
                    tasks.taken.push(path.to_owned());
                    continue;
                }
                None => Whereabouts::Moving,
            };
            if place != known {
                tasks.placed.insert(path.to_owned(), place);
            }
        }
        tasks
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

    /// Returns whether this head takes an export without a head.
    fn may_take(&self, (view, plan): (&ClusterView, &Plan), export: &Export) -> bool {
        let (path, settings) = (export.path(), export.settings());
        let own = &self.parts.head.run;
        let address = match view.head_of_address(export) {
            None => AddressHead::Nobody,
            Some(at) if at == own => {
                AddressHead::Own { has_exports: view.has_others_here(own, (plan, export)) }
            }
            Some(_) => AddressHead::Other,
        };
        let home = settings.home.as_deref().map(|name| HomeHead {
            name,
            is_up: view.is_up(name),
            is_drained: view.drained.contains(name),
        });
        let group = settings.address.map(|address| address.to_string().into_bytes());
        let group = group.as_deref().unwrap_or(path.as_os_str().as_encoded_bytes());
        let since = self.headless.get(path).map(Instant::elapsed).unwrap_or_default();
        let decider =
            OwnHead { name: &own.name, up: self.begun.elapsed(), is_drained: self.is_drained };
        Succession { lease: self.parts.head.lease_length() }.takes(
            decider,
            &HeadlessExport { group, home, address, since },
            view.undrained().map(|head| &*head.name),
        )
    }

    /// Refers callers of exports to other heads, or has them wait. The configuration is read once
    /// for all of them: a cluster may have thousands.
    fn place_all(&self, placed: &BTreeMap<PathBuf, Whereabouts>, moves: u64) -> Result<()> {
        if placed.is_empty() {
            return Ok(());
        }
        let Some(turn) = self.parts.turn_after(moves) else { return Ok(()) };
        let loaded = turn.load(self.parts.table.finder_placing(placed.clone()));
        let paths: Vec<PathBuf> = placed.keys().cloned().collect();
        let plan =
            self.parts.exports.current().adopting(&loaded.map_err(|why| anyhow!(why))?, &paths);
        for (path, place) in placed {
            self.parts.table.note(path, place.clone());
            tracing::info!(export = %path.display(), ?place, "the head of an export has changed");
        }
        turn.put_in_force(plan);
        Ok(())
    }
}

/// The work of one look.
#[derive(Default)]
struct Tasks {
    /// Exports that etcd says are here and that are not served yet.
    served: Vec<PathBuf>,
    /// Exports without a head that this one takes.
    taken: Vec<PathBuf>,
    /// Exports that are elsewhere, and where.
    placed: BTreeMap<PathBuf, Whereabouts>,
}
