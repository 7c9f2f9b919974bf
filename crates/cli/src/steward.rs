//! Who does what a running server is asked over its control socket.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, bail};
use comity_export::{Exports, Plan};
use comity_nfs4::Memory;
use comity_server::ShellNumbers;
use comity_server::control::{Answer, Request, Steward};
use serde_json::{Value, json};

use crate::configuration::Reload;
use crate::journal::Journal;
use crate::roster::Roster;
use crate::{explain, findings, offered};

/// What it needs for that.
pub(crate) struct House<N> {
    pub(crate) reload: Arc<Reload>,
    pub(crate) exports: Arc<Exports>,
    pub(crate) journal: Journal,
    /// What is remembered of clients.
    pub(crate) memory: Memory,
    /// What the server did and holds.
    pub(crate) numbers: N,
    /// Where it listens.
    pub(crate) addresses: Vec<SocketAddr>,
    /// What clients that do not name the port get.
    pub(crate) portmap: &'static str,
    /// When it began.
    pub(crate) begun: Instant,
}

impl<N: Fn() -> ShellNumbers + Send + Sync + 'static> Steward for House<N> {
    fn perform(&self, request: Request) -> Answer {
        match request {
            Request::Reload => Answer::Done(self.reload()),
            Request::Status => Answer::Done(self.status()),
            Request::LogLevel { level: None } => Answer::Done(self.journal.level().into()),
            Request::LogLevel { level: Some(level) } => match self.journal.set_level(&level) {
                Ok(()) => {
                    tracing::info!(level, "log level changed");
                    Answer::Done(level.into())
                }
                Err(error) => Answer::Failed(error.to_string()),
            },
            Request::Explain { .. } => match explain::value(&self.exports.current(), &request) {
                Ok(value) => Answer::Done(value),
                Err(error) => Answer::Failed(error.to_string()),
            },
            Request::Clients { .. }
            | Request::Client { .. }
            | Request::Waits { .. }
            | Request::Evict { .. } => match self.about_clients(&request) {
                Ok(value) => Answer::Done(value),
                Err(error) => Answer::Failed(error.to_string()),
            },
            Request::Exports { client } => {
                Answer::Done(offered_to(&self.exports.current(), client))
            }
        }
    }
}

impl<N: Fn() -> ShellNumbers> House<N> {
    fn reload(&self) -> Value {
        let (ok, found) = match self.reload.perform() {
            Ok(doubts) => (true, doubts),
            Err(found) => (false, found),
        };
        let findings: Vec<Value> = found.iter().map(findings::shown).collect();
        let exports = self.exports.current().exports().len();
        json!({ "ok": ok, "exports": exports, "findings": findings })
    }

    fn about_clients(&self, request: &Request) -> Result<Value> {
        let plan = self.exports.current();
        let roster = Roster { memory: &self.memory, plan: &plan };
        match request {
            Request::Client { client, after } => roster.client(client, *after),
            Request::Waits { client } => roster.waits(client.as_deref()),
            Request::Evict { client } => roster.evict(client),
            Request::Clients { after } => roster.clients(after.as_deref()),
            _ => bail!("that is no question about clients"),
        }
    }

    fn status(&self) -> Value {
        let numbers = (self.numbers)();
        let plan = self.exports.current();
        let paths = plan.exports().iter().map(|export| export.path().display().to_string());
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "process": std::process::id(),
            "uptime_seconds": self.begun.elapsed().as_secs(),
            "listen": self.addresses,
            "portmap": self.portmap,
            "exports": paths.collect::<Vec<_>>(),
            "connections": numbers.connections,
            "connections_accepted": numbers.accepted,
            "connections_refused": numbers.refused,
            "calls": numbers.records,
            "received_bytes": numbers.received_bytes,
            "sent_bytes": numbers.sent_bytes,
            "buffered_bytes": numbers.buffered_bytes,
            "threads": numbers.threads,
            "panics": numbers.panics,
        })
    }
}

fn offered_to(plan: &Plan, client: Option<IpAddr>) -> Value {
    match client {
        Some(client) => offered::value(plan, client),
        None => plan.exports().iter().map(|export| export.path().display().to_string()).collect(),
    }
}
