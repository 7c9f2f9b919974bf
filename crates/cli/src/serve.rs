//! Running a server, from its settings to its end.

use std::io::Write;
use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use comity_backend::LeaseWatch;
use comity_export::{Exports, HandleKey, Plan};
use comity_nfs4::Memory;
use comity_server::control::ControlSocket;
use comity_server::metrics::{Metrics, MetricsPage};
use comity_server::{LogRateLimit, Patience, Server, Settings, blocking_hook, inherited_listeners};
use rustix::fs::Mode;
use rustix::rand::{GetRandomFlags, getrandom};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::announcement::Announcement;
use crate::configuration::{Configuration, Reload, log, server_settings};
use crate::directory::Directory;
use crate::journal::Journal;
use crate::keeper::{Beginning, Keeper};
use crate::messenger;
use crate::monitor::Monitor;
use crate::service::{Programs, by_datagrams};
use crate::settings::{Serve, sources};
use crate::state::{State, control_socket};
use crate::steward::House;
use crate::{arguments, findings, listening, manager, tallies};

/// Serves until told to stop.
///
/// # Errors
/// Whatever keeps it from serving, with what to do about it.
pub(crate) fn serve(typed: arguments::Serve) -> Result<ExitCode> {
    // Before anything is opened, as sd_listen_fds(3) asks.
    let inherited = inherited_listeners();
    let sources = sources(&typed)?;
    if typed.check {
        return findings::check(sources, typed.json.json);
    }
    let written = match server_settings(&sources) {
        Ok(written) => written,
        Err(found) => return Ok(findings::refused(&found)),
    };
    let serve = Serve::decide(typed, sources, written.clone())?;
    let journal = Journal::begin(serve.level.clone(), serve.json)?;
    log_panics();
    let state = State::take(&serve.state_folder)?;
    let key = state.handle_key()?;
    let handles = HandleKey::new(key);
    let leases = serve.local_locks.then(Arc::<LeaseWatch>::default);
    let configuration = Configuration::new(serve.sources.clone(), handles)
        .read_only(serve.read_only)
        .all_as_root(serve.all_as_root)
        .in_memory(serve.in_memory)
        .leases(leases.clone());
    let plan = match configuration.load(None) {
        Ok((plan, doubts)) => {
            log(&doubts);
            plan
        }
        Err(found) => return Ok(findings::refused(&found)),
    };
    let listeners = listening::open(&serve.listen, inherited)?;
    let reload = |exports: &Arc<Exports>, memory| {
        Reload::new(configuration, Arc::clone(exports), memory, written)
    };
    Running::start(&serve, (plan, key, leases), listeners, reload)?.run(&serve, journal)
}

/// A server and what goes with it.
struct Running {
    signals: Signals,
    server: Server<Programs>,
    page: Option<MetricsPage>,
    directory: Directory,
    monitor: Option<Monitor>,
    reload: Arc<Reload>,
    exports: Arc<Exports>,
    keeper: Keeper,
}

impl Running {
    fn start(
        serve: &Serve,
        (plan, key, leases): (Plan, [u8; 16], Option<Arc<LeaseWatch>>),
        listeners: Vec<TcpListener>,
        reload: impl FnOnce(&Arc<Exports>, Memory) -> Reload,
    ) -> Result<Self> {
        // From here on a signal waits until it is asked for.
        let signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
        // Modes are what clients ask for.
        rustix::process::umask(Mode::empty());
        comity_backend::install_blocking_hook(blocking_hook);
        let exports = Arc::new(Exports::new(plan));
        let metrics = serve.metrics.map(|_| Arc::<Metrics>::default());
        let verifier = write_verifier()?;
        let mut keeper = Keeper::new(&Beginning {
            life: verifier,
            key: &key,
            lease_seconds: serve.lease_seconds,
            limits: serve.limits,
            leases,
            state_folder: &serve.state_folder,
            exports: &exports,
        })?;
        let monitor_state = keeper.monitor_state();
        let messages = messenger::start();
        let remembered = (keeper.memory(), monitor_state, &messages);
        let programs =
            Programs::new(&exports, verifier, remembered, serve.spoken, metrics.as_ref());
        let tally = programs.tally();
        let server = Server::start_with(programs, settings(serve), listeners)?;
        keeper.begin(server.dialer(), server.addresses())?;
        let page = metrics.zip(serve.metrics).map(|(metrics, address)| {
            let (numbers, exports) = (server.stats_source(), Arc::clone(&exports));
            let (memory, store) = (keeper.memory(), keeper.store());
            let render = move || {
                let mut text = metrics.render(&numbers(), &|id| path_of(&exports, id));
                tallies::append(&mut text, &exports);
                tallies::append_state(&mut text, &memory);
                tallies::append_store(&mut text, &store);
                tally.iter().for_each(|tally| tallies::append_operations(&mut text, tally));
                text
            };
            let started = MetricsPage::start(address, render);
            // The shell's advice is about the port of NFS.
            started.map_err(|error| anyhow!("{}", error.to_string().replace("--port", "--metrics")))
        });
        let directory = Directory::open(serve.portmap, server.addresses(), &exports)?;
        // Who cannot ask for its port does not find it.
        let is_found = serve.spoken.three && !matches!(directory, Directory::None);
        let by_datagrams = || by_datagrams(&exports, &keeper.memory(), (monitor_state, &messages));
        let monitor = is_found.then(|| Monitor::start(by_datagrams, &exports, server.addresses()));
        let reload = Arc::new(reload(&exports, keeper.memory()));
        let page = page.transpose()?;
        Ok(Self { signals, server, page, directory, monitor, reload, exports, keeper })
    }

    fn run(mut self, serve: &Serve, journal: Journal) -> Result<ExitCode> {
        let control = self.open_control(&serve.state_folder, journal)?;
        self.announce(serve);
        manager::ready();
        self.wait_for_end();
        manager::stopping();
        self.directory.close();
        self.monitor.into_iter().for_each(Monitor::stop);
        control.shutdown();
        if !self.server.shutdown() {
            tracing::warn!("calls in hand were not finished in time");
        }
        self.keeper.stop();
        if let Some(page) = self.page {
            page.shutdown();
        }
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }

    fn open_control(&self, state_folder: &Path, journal: Journal) -> Result<ControlSocket> {
        let path = control_socket(state_folder)?;
        let house = House {
            reload: Arc::clone(&self.reload),
            exports: Arc::clone(&self.exports),
            journal,
            memory: self.keeper.memory(),
            numbers: self.server.stats_source(),
            addresses: self.server.addresses().to_vec(),
            portmap: self.directory.name(),
            begun: Instant::now(),
        };
        let failed = || format!("cannot open the control socket {}", path.display());
        ControlSocket::start(&path, house).with_context(failed)
    }

    fn announce(&self, serve: &Serve) {
        let plan = self.exports.current();
        let announcement = Announcement {
            plan: &plan,
            read_only: serve.read_only,
            addresses: self.server.addresses(),
            spoken: serve.spoken,
            metrics: self.page.as_ref().map(MetricsPage::address),
            state_folder: &serve.state_folder,
            user: rustix::process::geteuid().as_raw(),
            is_one_user: self.reload.is_one_user(),
        };
        let text = if serve.json { announcement.json().to_string() } else { announcement.text() };
        let mut out = std::io::stdout().lock();
        // Who started the server need not listen to it.
        let _ = writeln!(out, "{text}").and_then(|()| out.flush());
        let addresses = self.server.addresses();
        tracing::info!(exports = plan.exports().len(), ?addresses, "serving");
    }

    /// Returns when the server is to end.
    fn wait_for_end(&mut self) {
        for signal in self.signals.forever() {
            if signal != SIGHUP {
                tracing::info!(signal, "stopping");
                return;
            }
            // What is wrong with it is in the log.
            let _ = self.reload.perform();
        }
    }
}

fn settings(serve: &Serve) -> Settings {
    let usual = Settings::default();
    let event_loops = serve.threads.unwrap_or(usual.event_loops);
    let patience = Patience { drain_seconds: serve.drain_seconds, ..usual.patience };
    Settings {
        event_loops,
        threads_max: event_loops + usual.threads_max - usual.event_loops,
        patience,
        ..usual
    }
}

fn path_of(exports: &Exports, id: u32) -> Option<String> {
    let plan = exports.current();
    let found = plan.exports().iter().find(|export| export.id().0 == id)?;
    Some(found.path().display().to_string())
}

/// Another in every life of the server, by chance.
fn write_verifier() -> Result<[u8; 8]> {
    let mut verifier = [0; 8];
    let count = getrandom(&mut verifier, GetRandomFlags::empty()).context("no random bytes")?;
    ensure!(count == verifier.len(), "the system gave too few random bytes");
    Ok(verifier)
}

/// A panic is a fault of ours: its place belongs in the log. The server answers the call it
/// happened in with SYSTEM_ERR and goes on.
fn log_panics() {
    static LOG: LogRateLimit = LogRateLimit::new();
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no reason given");
        LOG.say(|suppressed| tracing::error!(place, suppressed, "panic: {what}"));
    }));
}
