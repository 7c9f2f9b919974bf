//! Who does what a running server is asked over its control socket.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use comity_export::{Exports, Plan};
use comity_nfs4::Memory;
use comity_server::ServerStats;
use comity_server::control::{Answer, ControlHandler, Request};
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

impl<N: Fn() -> ServerStats + Send + Sync + 'static> ControlHandler for House<N> {
    fn perform(&self, request: Request) -> Answer {
        match self.answer(&request) {
            Ok(value) => Answer::Done(value),
            Err(error) => Answer::Failed(error.to_string()),
        }
    }
}

impl<N: Fn() -> ServerStats> House<N> {
    fn answer(&self, request: &Request) -> Result<Value> {
        let plan = self.exports.current();
        let roster = Roster { memory: &self.memory, plan: &plan };
        match request {
            Request::Reload => Ok(self.reload()),
            Request::Status => Ok(self.status(&plan)),
            Request::LogLevel { level: None } => Ok(self.journal.level().into()),
            Request::LogLevel { level: Some(level) } => self.set_level(level),
            Request::Explain { .. } => explain::value(&plan, request),
            Request::Exports { client } => Ok(offered_to(&plan, *client)),
            Request::Client { client, after } => roster.client(client, *after),
            Request::Waits { client } => roster.waits(client.as_deref()),
            Request::Evict { client } => roster.evict(client),
            Request::Clients { after } => roster.clients(after.as_deref()),
        }
    }

    fn set_level(&self, level: &str) -> Result<Value> {
        self.journal.set_level(level)?;
        tracing::info!(level, "log level changed");
        Ok(level.into())
    }

    fn reload(&self) -> Value {
        let (ok, found) = match self.reload.perform() {
            Ok(doubts) => (true, doubts),
            Err(found) => (false, found),
        };
        let findings: Vec<Value> = found.iter().map(findings::shown).collect();
        let exports = self.exports.current().exports().len();
        json!({ "ok": ok, "exports": exports, "findings": findings })
    }

    fn status(&self, plan: &Plan) -> Value {
        let numbers = (self.numbers)();
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
        Some(client) => {
            plan.learn_name(client);
            offered::value(plan, client)
        }
        None => plan.exports().iter().map(|export| export.path().display().to_string()).collect(),
    }
}
