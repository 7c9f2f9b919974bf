//! Running a server, from its settings to its end.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use comity_export::{Exports, HandleKey, Plan};
use comity_server::{Patience, Server, Settings, blocking_hook};
use rustix::fs::Mode;
use rustix::rand::{GetRandomFlags, getrandom};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::announcement::Announcement;
use crate::configuration::{Configuration, Reload, log, server_settings};
use crate::journal::Journal;
use crate::service::Programs;
use crate::settings::{Serve, sources};
use crate::state::State;
use crate::{arguments, findings, listening};

/// Serves until told to stop.
///
/// # Errors
/// Whatever keeps it from serving, with what to do about it.
pub(crate) fn serve(typed: arguments::Serve) -> Result<ExitCode> {
    let sources = sources(&typed)?;
    if typed.check {
        return findings::check(sources, typed.json.json);
    }
    let written = match server_settings(&sources) {
        Ok(written) => written,
        Err(found) => return Ok(findings::refused(&found)),
    };
    let serve = Serve::decide(typed, sources, written)?;
    Journal::begin(serve.level.clone(), serve.json)?;
    log_panics();
    // Modes are what clients ask for.
    rustix::process::umask(Mode::empty());
    let state = State::take(&serve.state_folder)?;
    let key = HandleKey::new(state.handle_key()?);
    let configuration = Configuration::new(serve.sources.clone(), key).read_only(serve.read_only);
    match configuration.load(None) {
        Ok((plan, doubts)) => {
            log(&doubts);
            run(&serve, configuration, plan)
        }
        Err(found) => Ok(findings::refused(&found)),
    }
}

fn run(serve: &Serve, configuration: Configuration, plan: Plan) -> Result<ExitCode> {
    // From here on a signal waits until it is asked for.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let exports = Arc::new(Exports::new(plan));
    let listeners = listening::open(&serve.listen)?;
    ensure!(!listeners.is_empty(), "there is no address to listen at; name one with --listen");
    comity_backend::install_blocking_hook(blocking_hook);
    let programs = Programs::new(&exports, write_verifier()?);
    let server = Server::start_with(programs, settings(serve), listeners)?;
    announce(serve, &exports.current(), &server)?;
    notify(&[NotifyState::Ready]);
    let reload = Reload::new(configuration, exports);
    wait_for_end(&mut signals, &reload);
    notify(&[NotifyState::Stopping]);
    if !server.shutdown() {
        tracing::warn!("calls in hand were not finished in time");
    }
    tracing::info!("stopped");
    Ok(ExitCode::SUCCESS)
}

fn settings(serve: &Serve) -> Settings {
    let usual = Settings::default();
    let desks = serve.threads.unwrap_or(usual.desks);
    let patience = Patience { drain_seconds: serve.drain_seconds, ..usual.patience };
    Settings { desks, threads_max: desks + usual.threads_max - usual.desks, patience, ..usual }
}

fn announce(serve: &Serve, plan: &Plan, server: &Server<Programs>) -> Result<()> {
    let announcement = Announcement {
        plan,
        read_only: serve.read_only,
        addresses: server.addresses(),
        metrics: serve.metrics,
        state_folder: &serve.state_folder,
        user: rustix::process::geteuid().as_raw(),
    };
    let text = if serve.json { announcement.json().to_string() } else { announcement.text() };
    let mut out = std::io::stdout().lock();
    // Who started the server need not listen to it.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
    tracing::info!(exports = plan.exports().len(), addresses = ?server.addresses(), "serving");
    Ok(())
}

/// Returns when the server is to end.
fn wait_for_end(signals: &mut Signals, reload: &Reload) {
    for signal in signals.forever() {
        if signal != SIGHUP {
            tracing::info!(signal, "stopping");
            return;
        }
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            notify(&[NotifyState::Reloading, now]);
        }
        // What is wrong with it is in the log.
        let _ = reload.perform();
        notify(&[NotifyState::Ready]);
    }
}

/// Tells the service manager, if there is one.
fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager was not told");
    }
}

/// Another in every life of the server, by chance.
fn write_verifier() -> Result<[u8; 8]> {
    let mut verifier = [0; 8];
    let count = getrandom(&mut verifier, GetRandomFlags::empty()).context("no random bytes")?;
    ensure!(count == verifier.len(), "the system gave too few random bytes");
    Ok(verifier)
}

/// A panic is a fault of ours: it belongs in the log with its place. The server answers the call it
/// happened in with SYSTEM_ERR and goes on.
fn log_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        let what = panic.payload_as_str().unwrap_or("no reason given");
        let thread = std::thread::current();
        tracing::error!(place, thread = thread.name().unwrap_or("?"), "panic: {what}");
    }));
}
