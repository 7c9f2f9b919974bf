use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use comity_load::{
    LoadModel, Occupancy, OperationCounts, Operations, Resource, ServerLoad, Shares, Usage,
    UserShare,
};
use comity_nfs4::{Memory, OperationCounters};
use comity_server::metrics::{Metrics, ProcedureStats, Readings};
use comity_server::{PeerStats, ServerStats, Settings};
use comity_vfs::AsServer;

use super::host_files::HostFiles;
use crate::state_service::each_second;

/// The sources of samples.
pub(crate) struct LoadSources {
    pub(crate) stats: Box<dyn Fn() -> ServerStats + Send + Sync>,
    pub(crate) peers: Box<dyn Fn() -> Vec<PeerStats> + Send + Sync>,
    /// The settings of the server, with its limits.
    pub(crate) settings: Settings,
    pub(crate) memory: Memory,
    /// Times of procedures and counts by export, if they are measured.
    pub(crate) metrics: Option<Arc<Metrics>>,
    /// Counts of the operations of NFSv4, if that version is enabled.
    pub(crate) operations: Option<Arc<OperationCounters>>,
}

/// A procedure, or an operation of NFSv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OperationName {
    pub(crate) program: &'static str,
    pub(crate) version: u32,
    pub(crate) operation: &'static str,
}

/// The current load.
pub(crate) struct Load {
    pub(crate) model: LoadModel,
    pub(crate) clients: Shares<IpAddr>,
    /// Connections of each client.
    pub(crate) connections: HashMap<IpAddr, u64>,
    pub(crate) exports: Shares<u32>,
    pub(crate) operations: Operations<OperationName>,
    /// Rates of recalls and similar events.
    pub(crate) events: Shares<&'static str>,
    /// Time of the last sample, since the sampler started.
    pub(crate) taken: Duration,
    /// True if times of procedures and counts by export are measured.
    pub(crate) is_measured: bool,
}

/// Takes a sample each second, until it is dropped.
pub(crate) struct LoadService {
    load: Arc<Mutex<Load>>,
    sampler: Option<(Sender<()>, JoinHandle<()>)>,
}

impl LoadService {
    /// Starts to add samples to a load. Rates of devices are recorded in `state_folder`.
    ///
    /// # Errors
    /// A thread cannot be created.
    pub(crate) fn start(
        load: Arc<Mutex<Load>>,
        sources: LoadSources,
        state_folder: &Path,
    ) -> Result<Self> {
        let mut files = HostFiles::new(state_folder.to_owned());
        let (begun, shared) = (Instant::now(), Arc::clone(&load));
        let mut take = move || {
            let Ok(server) = AsServer::here() else { return };
            let host = files.sample(&server);
            lock(&shared).add(begun.elapsed(), host, &sources);
        };
        take();
        Ok(Self { load, sampler: Some(each_second("load", take)?) })
    }

    /// Returns a handle by which the load can be read.
    pub(crate) fn load(&self) -> Arc<Mutex<Load>> {
        Arc::clone(&self.load)
    }
}

impl Drop for LoadService {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.sampler.take() {
            drop(stop);
            // A panic of the thread is logged.
            drop(thread.join());
        }
    }
}

/// Locks the load, even after a panic of another thread.
pub(super) fn lock(load: &Mutex<Load>) -> MutexGuard<'_, Load> {
    load.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the load of this server as another one needs it.
pub(crate) fn server_load(load: &Mutex<Load>) -> ServerLoad {
    let load = lock(load);
    load.model.server_load(load.clients.total(), load.taken)
}

/// Returns the part that each export has in the calls, by its number; none if that is not measured.
pub(crate) fn parts_by_export(load: &Mutex<Load>) -> Option<HashMap<u32, f64>> {
    let load = lock(load);
    let (users, all) = (load.exports.busiest(usize::MAX), load.clients.total().calls);
    let part = |share: UserShare<u32>| (share.key, share.minute.calls / all);
    load.is_measured.then(|| users.into_iter().map(part).collect())
}

impl Load {
    /// Makes a load without any sample.
    pub(crate) fn shared(is_measured: bool) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self {
            model: LoadModel::default(),
            clients: Shares::default(),
            connections: HashMap::new(),
            exports: Shares::default(),
            operations: Operations::new(ProcedureStats::bound_nanoseconds),
            events: Shares::default(),
            taken: Duration::ZERO,
            is_measured,
        }))
    }

    fn add(&mut self, at: Duration, host: comity_load::HostSample, sources: &LoadSources) {
        let stats = (sources.stats)();
        self.taken = at;
        self.model.add(at, host, &occupancy(&stats, sources));
        let peers = (sources.peers)();
        self.connections = peers.iter().map(|peer| (peer.address, peer.connections)).collect();
        self.clients.add(at, peers.iter().map(usage));
        self.events.add(at, events(&stats, &sources.memory).into_iter());
        let readings = sources.metrics.as_ref().map(|metrics| metrics.read()).unwrap_or_default();
        self.exports.add(at, usages_by_export(&readings));
        let done = operations(readings.procedures, sources.operations.as_deref());
        self.operations.add(at, done.into_iter());
    }
}

fn usage(peer: &PeerStats) -> (IpAddr, Usage) {
    let PeerStats { records, received_bytes, sent_bytes, service_nanoseconds, .. } = *peer;
    (peer.address, Usage { calls: records, received_bytes, sent_bytes, service_nanoseconds })
}

/// Returns the successful calls of each export, and the time that all its calls took.
fn usages_by_export(readings: &Readings) -> impl Iterator<Item = (u32, Usage)> {
    readings.service_by_export.iter().map(|(export, service)| {
        let calls = readings.calls_by_export.get(export).copied().unwrap_or_default();
        (*export, Usage { calls, service_nanoseconds: *service, ..Usage::default() })
    })
}

fn occupancy(stats: &ServerStats, sources: &LoadSources) -> Vec<Occupancy> {
    let (settings, state) = (&sources.settings, sources.memory.engine.occupied());
    let of = |resource, used: usize, bound: usize| Occupancy {
        resource,
        used: used as u64,
        bound: bound as u64,
    };
    let [connections, buffered_bytes, threads] =
        [stats.connections, stats.buffered_bytes, stats.threads].map(|count| count as usize);
    vec![
        of(Resource::Connections, connections, settings.connections_max),
        of(Resource::Buffers, buffered_bytes, settings.buffered_bytes_max),
        of(Resource::Threads, threads, settings.threads_max),
        of(Resource::Clients, state.clients.0, state.clients.1),
        of(Resource::Delegations, state.delegations.0, state.delegations.1),
        of(Resource::ReplyCache, state.reply_cache_bytes.0, state.reply_cache_bytes.1),
        of(Resource::ClientState, state.held_bytes.0, state.held_bytes.1),
    ]
}

fn events(stats: &ServerStats, memory: &Memory) -> [(&'static str, Usage); 7] {
    let totals = memory.engine.totals();
    [
        ("connections accepted", stats.accepted),
        ("connections refused", stats.refused),
        ("calls repeated", stats.replayed),
        ("recalls sent", totals.recalls_sent),
        ("recalls unanswered", totals.recalls_overdue),
        ("delegations revoked", totals.delegations_revoked),
        ("waits for locks", totals.lock_waits),
    ]
    .map(|(event, calls)| (event, Usage { calls, ..Usage::default() }))
}

fn operations(
    procedures: Vec<ProcedureStats>,
    operations: Option<&OperationCounters>,
) -> Vec<(OperationName, OperationCounts)> {
    let procedures = procedures.into_iter().map(|stats| {
        let ProcedureStats { program, version, procedure: operation, calls, .. } = stats;
        let name = OperationName { program, version, operation };
        let (failed, latencies) = (stats.failed, stats.latencies);
        (name, OperationCounts { done: calls, failed, latencies })
    });
    let counted = operations.map(OperationCounters::counted);
    let four = counted.into_iter().flatten().map(|counted| {
        let name = OperationName { program: "nfs", version: 4, operation: counted.operation };
        let (done, failed) = (counted.ok + counted.failed, counted.failed);
        (name, OperationCounts { done, failed, latencies: Vec::new() })
    });
    procedures.chain(four).collect()
}
