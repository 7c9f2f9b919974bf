//! Running a server, from start to stop.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use comity_backend::LeaseWatch;
use comity_export::{Diagnostic, Exports, HandleKey, ServerSettings};
use comity_migrate::MigrationTarget;
use comity_nfs4::{Memory, OperationCounters};
use comity_server::control::{ControlHandler, ControlSocket, Request};
use comity_server::metrics::Metrics;
use comity_server::{HttpService, LogRateLimit, Patience, Server, Settings, blocking_hook};
use comity_state::Limits;
use comity_store::Store;
use rustix::fs::Mode;
use rustix::rand::{GetRandomFlags, getrandom};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::cluster::{
    self, ClusterMoves, ClusterParts, ExportArrivals, ExportTable, ExportWatch, Head, HeadDrain,
    HeadPlace,
};
use crate::configuration::{Configuration, Reload, log};
use crate::control_handler::ServerControl;
use crate::grant_service::GrantService;
use crate::load::{Load, LoadService, LoadSources};
use crate::logging::Logging;
use crate::metrics_page::PageSources;
use crate::migration::{
    self, Advisor, Arrivals, Forwarder, MigrationParts, Migrations, MovedExports,
};
use crate::nlm_replies;
use crate::options::Options;
use crate::placement;
use crate::placement_moves::PlacementMoves;
use crate::portmap::PortmapService;
use crate::service::{HostParts, Programs, by_datagrams};
use crate::sockets::{self, PageListeners};
use crate::startup_banner::StartupBanner;
use crate::statd::Statd;
use crate::state_folder::{StateFolder, control_socket};
use crate::state_service::{StateOptions, StateService, open_store};
use crate::systemd;
use crate::tls::Tls;
use crate::web;
use crate::web_token::Token;

/// The end of a run of the server.
#[derive(Debug)]
pub enum Ended {
    /// A signal stopped it.
    Stopped,
    /// The server did not start, because the configuration has errors.
    Refused(Vec<Diagnostic>),
}

/// Serves until a signal stops the server. `written` is the `[server]` part of the configuration;
/// `inherited` are the sockets that a service manager passed on.
///
/// # Errors
/// The reason why the server cannot serve, and what to do.
pub fn run(
    options: &Options,
    written: ServerSettings,
    inherited: Vec<TcpListener>,
) -> Result<Ended> {
    let logging = Logging::begin(options.level.clone(), options.json)?;
    log_panics();
    let state = StateFolder::take(&options.state_folder)?;
    let key = state.handle_key()?;
    let handles = HandleKey::new(key);
    let leases = options.local_locks.then(Arc::<LeaseWatch>::default);
    let moved = MovedExports::open(&options.state_folder)?;
    let head = options.cluster.as_ref().map(|cluster| Head::join(cluster, &key)).transpose()?;
    let table = Arc::<ExportTable>::default();
    let finder = if head.is_some() { table.finder() } else { moved.finder() };
    let grants = Arc::new(GrantService::open(options, state.grant_key()?)?);
    let placement_key = options.placement_key.as_deref().map(placement::key).transpose()?;
    let configuration = Configuration::new(options.sources.clone(), handles)
        .read_only(options.read_only)
        .all_as_root(options.all_as_root)
        .in_memory(options.in_memory)
        .given(options.given.clone())
        .named(state.server_id()?)
        .storing(placement_key)
        .leases(leases.clone())
        .moved(finder)
        .granting(grants.grants());
    let limits = configuration.bounds(options.limits);
    let plan = match configuration.load(None) {
        Ok((plan, doubts)) => {
            log(&doubts);
            plan
        }
        Err(found) => return Ok(Ended::Refused(found)),
    };
    head.as_ref().map_or(Ok(()), |_| cluster::check_all(&plan))?;
    let listeners = sockets::open(&options.listen, inherited)?;
    let addresses: Vec<_> = listeners.iter().flat_map(TcpListener::local_addr).collect();
    let tls = Tls::open(&options.tls, (&state, &plan), &addresses)?.map(Arc::new);
    let renewed = tls.clone();
    let reload = |exports: &Arc<Exports>, memory| {
        Reload::new(configuration, Arc::clone(exports), memory, written).renewing(renewed)
    };
    let PageListeners { metrics, web } = PageListeners::open(options)?;
    let web = web.map(|listener| Ok::<_, anyhow::Error>((listener, state.web_token()?)));
    let web = web.transpose()?;
    let server_id = state.server_id()?;
    let state = StartState {
        exports: Arc::new(Exports::new(plan)),
        key,
        server_id,
        limits,
        leases,
        tls,
        grants,
        moved,
        head: head.map(|head| (head, table)),
        metrics,
        web,
    };
    let running = Running::start(options, state, listeners, reload)?;
    running.run(options, logging)?;
    Ok(Ended::Stopped)
}

/// The state that is loaded before the server starts.
struct StartState {
    /// The exports, with the first plan in force.
    exports: Arc<Exports>,
    /// The key of the handles.
    key: [u8; 16],
    /// The random bytes that tell this server from others with the same key.
    server_id: [u8; 8],
    limits: Limits,
    leases: Option<Arc<LeaseWatch>>,
    tls: Option<Arc<Tls>>,
    /// The grants of keys.
    grants: Arc<GrantService>,
    /// The exports that were moved.
    moved: Arc<MovedExports>,
    /// The head of a cluster that this server is, with the table of the heads of all exports.
    head: Option<(Arc<Head>, Arc<ExportTable>)>,
    /// The socket of the metrics page.
    metrics: Option<TcpListener>,
    /// The socket of the web page, with its token.
    web: Option<(TcpListener, Token)>,
}

impl StartState {
    /// Loads the state of clients.
    fn state_service(&mut self, options: &Options, life: [u8; 8]) -> Result<StateService> {
        let store = match &self.head {
            Some((head, _)) => Store::on(head.medium()),
            None => open_store(&options.state_folder)?,
        };
        StateService::new(StateOptions {
            life,
            key: &self.key,
            server_id: &self.server_id,
            lease_seconds: options.lease_seconds,
            has_grace: options.placement_key.is_none(),
            limits: self.limits,
            leases: self.leases.take(),
            store,
            exports: &self.exports,
            grants: &self.grants,
        })
    }

    fn host_parts(&self, state_service: &StateService) -> HostParts {
        let forwarder = Forwarder::new(&self.exports, &self.moved, self.tls.clone());
        HostParts {
            monitor_state: state_service.monitor_state(),
            messages: nlm_replies::start(),
            forwarder: Arc::new(forwarder),
            lease: self.head.as_ref().map(|(head, _)| head.lease()),
        }
    }
}

/// Sets what belongs to the whole process.
fn prepare_process() {
    // Clients set modes themselves.
    rustix::process::umask(Mode::empty());
    comity_backend::install_blocking_hook(blocking_hook);
}

/// A running server with its threads and sockets.
struct Running {
    signals: Signals,
    server: Server<Programs>,
    page: Option<HttpService>,
    /// The socket of the web page, with its token.
    web: Option<(TcpListener, Token)>,
    portmap: PortmapService,
    statd: Option<Statd>,
    reload: Arc<Reload>,
    exports: Arc<Exports>,
    state_service: StateService,
    load: LoadService,
    grants: Arc<GrantService>,
    tls: Option<Arc<Tls>>,
    migration: MigrationParts,
    cluster: Option<ClusterParts>,
}

impl Running {
    fn start(
        options: &Options,
        mut beginning: StartState,
        listeners: Vec<TcpListener>,
        reload: impl FnOnce(&Arc<Exports>, Memory) -> Reload,
    ) -> Result<Self> {
        // From here on signals are queued until they are read.
        let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        prepare_process();
        let verifier = write_verifier()?;
        let mut state_service = beginning.state_service(options, verifier)?;
        let hosts = beginning.host_parts(&state_service);
        let StartState { exports, tls, grants, moved, head, metrics: listener, web, .. } =
            beginning;
        let metrics = listener.as_ref().map(|_| Arc::<Metrics>::default());
        let remembered = (state_service.memory(), &hosts);
        let reload = Arc::new(reload(&exports, state_service.memory()));
        let parts = MigrationParts {
            exports: Arc::clone(&exports),
            memory: state_service.memory(),
            reload: Arc::clone(&reload),
            moved,
            peer_runs: Arc::default(),
            tls: tls.clone(),
            load: Load::shared(metrics.is_some()),
            serves_three: options.spoken.three,
            refusal: migration::refusal(options),
        };
        let cluster =
            head.map(|head| cluster_parts(head, &parts, (&listeners, options), &state_service));
        let target = target(cluster.as_ref(), &parts);
        let programs =
            Programs::new(&exports, verifier, remembered, options.spoken, metrics.as_ref())
                .granting(&grants.grants())
                .migrating(target, &parts.moved, u64::from_be_bytes(verifier))
                .offering_tls(tls.is_some());
        let operations = programs.operation_counters();
        let settings = Settings { tls: tls.as_deref().map(Tls::acceptor), ..settings(options) };
        let server = Server::start_with(programs, settings, listeners)?;
        state_service.begin(server.dialer(), server.addresses())?;
        let load = start_load((&parts, options), &server, (metrics.clone(), operations.clone()))?;
        let page = metrics.zip(listener).map(|(metrics, listener)| {
            let sources = PageSources {
                metrics,
                exports: Arc::clone(&exports),
                memory: state_service.memory(),
                store: state_service.store(),
                grants: grants.grants(),
                operations,
                load: load.load(),
                cluster: cluster.clone(),
            };
            sources.serve(listener, server.stats_source())
        });
        let portmap = PortmapService::open(options.portmap, server.addresses(), &exports)?;
        // Hosts cannot find the status monitor without a portmapper, so it is not started.
        let is_found = options.spoken.three && !matches!(portmap, PortmapService::None);
        let by_datagrams = || by_datagrams(&exports, &state_service.memory(), &hosts);
        let statd = is_found.then(|| Statd::start(by_datagrams, server.addresses()));
        let page = page.transpose()?;
        Ok(Self {
            signals,
            server,
            page,
            web,
            portmap,
            statd,
            reload,
            exports,
            state_service,
            load,
            grants,
            tls,
            migration: parts,
            cluster,
        })
    }

    fn run(mut self, options: &Options, logging: Logging) -> Result<()> {
        let moves = self.cluster.clone().map(|it| ClusterMoves::new(it, self.migration.clone()));
        let moves = moves.map(Arc::new);
        let handler = Arc::new(self.control(logging, moves.clone()));
        let control = open_control(&options.state_folder, &handler)?;
        let web = self.web.take().map(|(listener, token)| {
            web::serve(listener, token, Arc::new(move |request| handler.perform(request)))
        });
        let web = web.transpose()?;
        let outcomes = migration::ask_for_outcomes(&self.migration)?;
        let news = self.state_service.notification(self.server.addresses());
        let notices = migration::notify_of_restarts(&self.migration, news)?;
        let watch = self.cluster.clone().map(ExportWatch::begin).transpose()?;
        let drain = self.cluster.clone().zip(moves);
        let drain = drain.map(|(cluster, moves)| HeadDrain::begin(cluster, moves)).transpose()?;
        self.announce(options, web.as_ref());
        systemd::ready();
        self.wait_for_end();
        systemd::stopping();
        self.portmap.close();
        self.statd.into_iter().for_each(Statd::stop);
        control.shutdown();
        drop((outcomes, notices, watch, drain));
        let is_idle = self.server.shutdown();
        if !is_idle {
            tracing::warn!("running calls did not finish in time");
        }
        self.state_service.stop();
        self.cluster.iter().for_each(|cluster| cluster.leave(is_idle));
        self.page.into_iter().chain(web).for_each(HttpService::shutdown);
        tracing::info!("stopped");
        Ok(())
    }

    fn control(
        &self,
        logging: Logging,
        cluster_moves: Option<Arc<ClusterMoves>>,
    ) -> impl ControlHandler<Request = Request> + use<> {
        ServerControl {
            moves: PlacementMoves::default(),
            migrations: Migrations::new(self.migration.clone()),
            advisor: Advisor::new(self.migration.clone()),
            reload: Arc::clone(&self.reload),
            exports: Arc::clone(&self.exports),
            logging,
            memory: self.state_service.memory(),
            grants: Arc::clone(&self.grants),
            numbers: self.server.stats_source(),
            addresses: self.server.addresses().to_vec(),
            portmap: self.portmap.name(),
            tls: self.tls.clone(),
            load: self.load.load(),
            cluster_moves,
            cluster: self.cluster.clone(),
            begun: Instant::now(),
        }
    }

    fn announce(&self, options: &Options, web: Option<&HttpService>) {
        let plan = self.exports.current();
        let banner = StartupBanner {
            plan: &plan,
            read_only: options.read_only,
            addresses: self.server.addresses(),
            spoken: options.spoken,
            metrics: self.page.as_ref().map(HttpService::address),
            web: web.map(HttpService::address),
            state_folder: &options.state_folder,
            user: rustix::process::geteuid().as_raw(),
            is_one_user: self.reload.is_one_user(),
            tls: self.tls.as_deref(),
        };
        let text = if options.json { banner.json().to_string() } else { banner.text() };
        let mut out = std::io::stdout().lock();
        // A closed standard output is not an error.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        let addresses = self.server.addresses();
        tracing::info!(exports = plan.exports().len(), ?addresses, "serving");
    }

    /// Waits until the server must stop; SIGHUP reloads the configuration.
    fn wait_for_end(&mut self) {
        for signal in self.signals.forever() {
            if signal != SIGHUP {
                tracing::info!(signal, "stopping");
                return;
            }
            // Errors are logged.
            let _ = self.reload.perform();
        }
    }
}

/// The parts of the server that a head of a cluster needs.
fn cluster_parts(
    head: (Arc<Head>, Arc<ExportTable>),
    MigrationParts { exports, memory, reload, tls, .. }: &MigrationParts,
    (listeners, options): (&[TcpListener], &Options),
    state_service: &StateService,
) -> ClusterParts {
    let listening: Vec<_> = listeners.iter().flat_map(TcpListener::local_addr).collect();
    let news = state_service.notification(&listening);
    let place = HeadPlace { listening, tls: tls.clone() };
    // No peer of the configuration may hand exports over.
    exports.note_heads(Vec::new());
    ClusterParts::new(head, (exports, memory.clone()), (reload, news), (place, options.local_locks))
}

/// Returns what takes exports over: in a cluster those of other heads, else those of peers.
fn target(cluster: Option<&ClusterParts>, parts: &MigrationParts) -> Arc<dyn MigrationTarget> {
    match cluster {
        Some(cluster) => Arc::new(ExportArrivals::new(cluster.clone(), parts.clone())),
        None => Arc::new(Arrivals::new(parts.clone())),
    }
}

/// Starts to sample the load; metrics and counters of operations are present if calls are measured.
fn start_load(
    (parts, options): (&MigrationParts, &Options),
    server: &Server<Programs>,
    (metrics, operations): (Option<Arc<Metrics>>, Option<Arc<OperationCounters>>),
) -> Result<LoadService> {
    let sources = LoadSources {
        stats: Box::new(server.stats_source()),
        peers: Box::new(server.peers_source()),
        settings: server.settings().clone(),
        memory: parts.memory.clone(),
        metrics,
        operations,
    };
    LoadService::start(Arc::clone(&parts.load), sources, &options.state_folder)
}

/// Opens the control socket; `handler` performs its requests.
fn open_control<H: ControlHandler>(state_folder: &Path, handler: &Arc<H>) -> Result<ControlSocket> {
    let path = control_socket(state_folder)?;
    let failed = || format!("cannot open the control socket {}", path.display());
    ControlSocket::start(&path, Arc::clone(handler)).with_context(failed)
}

fn settings(options: &Options) -> Settings {
    let usual = Settings::default();
    let event_loops = options.threads.unwrap_or(usual.event_loops);
    let patience = Patience { drain_seconds: options.drain_seconds, ..usual.patience };
    Settings {
        event_loops,
        threads_max: event_loops + usual.threads_max - usual.event_loops,
        patience,
        ..usual
    }
}

/// Makes the write verifier: random bytes, which differ in every run of the server.
fn write_verifier() -> Result<[u8; 8]> {
    let mut verifier = [0; 8];
    let count = getrandom(&mut verifier, GetRandomFlags::empty()).context("no random bytes")?;
    ensure!(count == verifier.len(), "the system gave too few random bytes");
    Ok(verifier)
}

/// Logs panics with their place. The server answers the call with SYSTEM_ERR and continues.
fn log_panics() {
    static LOG: LogRateLimit = LogRateLimit::new();
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no reason given");
        LOG.say(|suppressed| tracing::error!(place, suppressed, "panic: {what}"));
    }));
}
