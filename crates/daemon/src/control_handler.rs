//! Performs the requests that arrive at the control socket.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use comity_export::{Exports, Plan};
use comity_nfs4::Memory;
use comity_server::ServerStats;
use comity_server::control::{Answer, ControlHandler, Request};
use comity_vfs::Handle;
use serde_json::{Value, json};

use crate::client_admin::ClientAdmin;
use crate::cluster::{ClusterMoves, ClusterParts};
use crate::configuration::Reload;
use crate::diagnostics::diagnostic_json;
use crate::explanation::explanation_json;
use crate::grant_admin;
use crate::grant_service::GrantService;
use crate::load::{Load, load_json};
use crate::logging::Logging;
use crate::migration::{Advisor, Migrations};
use crate::placement_add;
use crate::placement_admin;
use crate::placement_compare;
use crate::placement_moves::PlacementMoves;
use crate::placement_rebuild;
use crate::tls::Tls;
use crate::visible_exports::visible_exports_json;

const NO_HEAD: &str = "this server is no head of a cluster: start it with --cluster";

/// The parts of the server that requests need.
pub(crate) struct ServerControl<N> {
    pub(crate) reload: Arc<Reload>,
    pub(crate) exports: Arc<Exports>,
    pub(crate) logging: Logging,
    /// The clients' state.
    pub(crate) memory: Memory,
    /// The grants of keys.
    pub(crate) grants: Arc<GrantService>,
    /// Returns the server's statistics.
    pub(crate) numbers: N,
    /// The addresses it listens on.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The means by which clients find the port.
    pub(crate) portmap: &'static str,
    /// TLS, if it is on.
    pub(crate) tls: Option<Arc<Tls>>,
    /// The current load.
    pub(crate) load: Arc<Mutex<Load>>,
    /// The move of exports to other servers.
    pub(crate) migrations: Migrations,
    /// The advice to move exports.
    pub(crate) advisor: Advisor,
    /// The move of a file to other data servers.
    pub(crate) moves: PlacementMoves,
    /// The cluster, if the server is a head of one.
    pub(crate) cluster: Option<ClusterParts>,
    /// The moves to other heads of it.
    pub(crate) cluster_moves: Option<Arc<ClusterMoves>>,
    /// The time when the server started.
    pub(crate) begun: Instant,
}

impl<N: Fn() -> ServerStats + Send + Sync + 'static> ControlHandler for ServerControl<N> {
    type Request = Request;

    /// `comity cluster addresses` asks each second, and takes the addresses of this head away if it
    /// gets no answer: it must not wait for a head that is silent.
    fn is_in_turn(request: &Request) -> bool {
        *request != Request::Cluster
    }

    fn perform(&self, request: Request) -> Answer {
        match self.answer(&request) {
            Ok(value) => Answer::Done(value),
            Err(error) => Answer::Failed(format!("{error:#}")),
        }
    }
}

impl<N: Fn() -> ServerStats> ServerControl<N> {
    fn answer(&self, request: &Request) -> Result<Value> {
        let plan = self.exports.current();
        let admin = ClientAdmin { memory: &self.memory, plan: &plan };
        match request {
            Request::Reload => Ok(self.reload()),
            Request::Status => Ok(self.status(&plan)),
            Request::Load => Ok(self.load(&plan)),
            Request::LogLevel { level: None } => Ok(self.logging.level().into()),
            Request::LogLevel { level: Some(level) } => self.set_level(level),
            Request::Explain { .. } => explanation_json(&plan, request),
            Request::Exports { client } => Ok(offered_to(&plan, *client)),
            Request::Client { client, after } => admin.client(client, *after),
            Request::Waits { client } => admin.waits(client.as_deref()),
            Request::Evict { client } => {
                // The state of a client must not change while it moves.
                let _turn = self.reload.turn();
                admin.evict(client)
            }
            Request::Clients { after } => admin.clients(after.as_deref()),
            Request::Migrate { exports, to, forward_seconds, dry_run, run } => {
                let to = (&**to, *forward_seconds);
                // A migration waits until nobody uses the plan any more.
                drop(plan);
                match dry_run {
                    true => self.migrations.try_out(exports, to),
                    false => self.migrations.advance(exports, to, *run),
                }
            }
            Request::Cluster => Ok(self.cluster.as_ref().context(NO_HEAD)?.status_json()),
            Request::ClusterMove { export, to, dry_run, run } => {
                let moves = self.cluster_moves.as_ref().context(NO_HEAD)?;
                // A move waits until nobody uses the plan any more.
                drop(plan);
                match dry_run {
                    true => moves.try_out(export, to),
                    false => moves.advance(export, (to, *run)),
                }
            }
            Request::ClusterDrain { head } => self.cluster.as_ref().context(NO_HEAD)?.drain(head),
            Request::ClusterUndrain { head } => {
                self.cluster.as_ref().context(NO_HEAD)?.undrain(head)
            }
            Request::CancelMigration => self.migrations.cancel(),
            Request::Advise { with, run } => self.advisor.advance(with, *run),
            Request::Why { .. } => grant_admin::why(&plan, request),
            Request::BindAccount { .. }
            | Request::UnbindAccount { .. }
            | Request::Accounts
            | Request::RevokeGrant { .. }
            | Request::HeldGrants { .. }
            | Request::EndingGrants => grant_admin::perform(&self.grants, request),
            Request::Placements { .. }
            | Request::PlacementFiles { .. }
            | Request::PlacementStored { .. }
            | Request::PlacementBytes { .. }
            | Request::PlacementLabels { .. }
            | Request::PlacementRebuild { .. }
            | Request::PlacementMove { .. }
            | Request::PlacementTry { .. }
            | Request::PlacementDrained { .. } => self.of_placements(&plan, request),
        }
    }

    /// Answers a request about the placements of exports.
    fn of_placements(&self, plan: &Plan, request: &Request) -> Result<Value> {
        match request {
            Request::Placements { export } => {
                placement_admin::status(plan, &self.memory, export.as_deref())
            }
            Request::PlacementFiles { export, directory, after } => {
                placement_admin::files(plan, export, (directory.as_deref(), *after))
            }
            Request::PlacementStored { export, server, after } => {
                placement_admin::stored(plan, export, (server, *after))
            }
            Request::PlacementBytes { export, file, offset, length } => {
                let found = placement_admin::find(plan, export)?;
                let range = (*offset, length.unwrap_or(u64::MAX));
                placement_compare::compare(found, &self.memory, (&Handle::new(file)?, range))
            }
            Request::PlacementLabels { .. } | Request::PlacementRebuild { .. } => {
                placement_rebuild::perform(plan, request)
            }
            Request::PlacementMove { export, file } => {
                let found = placement_admin::find(plan, export)?;
                self.moves.advance(found, &self.memory, &Handle::new(file)?)
            }
            Request::PlacementTry { .. } => {
                placement_add::perform(plan, request, self.reload.configuration_file())
            }
            Request::PlacementDrained { export, server } => {
                placement_admin::note_drained(plan, export, server)
            }
            _ => bail!("this request is not about placements"),
        }
    }

    fn set_level(&self, level: &str) -> Result<Value> {
        self.logging.set_level(level)?;
        tracing::info!(level, "log level changed");
        Ok(level.into())
    }

    fn reload(&self) -> Value {
        let (ok, found) = match self.reload.perform() {
            Ok(doubts) => (true, doubts),
            Err(found) => (false, found),
        };
        let findings: Vec<Value> = found.iter().map(diagnostic_json).collect();
        let exports = self.exports.current().exports().len();
        json!({ "ok": ok, "exports": exports, "findings": findings })
    }

    fn load(&self, plan: &Plan) -> Value {
        let grace = self.memory.engine.grace_left(self.memory.clock.now());
        let mut load = load_json(&self.load, plan);
        load["version"] = env!("CARGO_PKG_VERSION").into();
        load["uptime_seconds"] = self.begun.elapsed().as_secs().into();
        load["grace_left_seconds"] = grace.as_secs().into();
        load
    }

    fn status(&self, plan: &Plan) -> Value {
        let (numbers, grants) = ((self.numbers)(), self.grants.grants().counts());
        let shown = self.tls.as_deref().map(Tls::shown);
        let paths = plan.exports().iter().map(|export| export.path().display().to_string());
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "process": std::process::id(),
            "uptime_seconds": self.begun.elapsed().as_secs(),
            "listen": self.addresses,
            "portmap": self.portmap,
            "exports": paths.collect::<Vec<_>>(),
            "moved": self.migrations.moved(),
            "connections": numbers.connections,
            "connections_accepted": numbers.accepted,
            "connections_refused": numbers.refused,
            "calls": numbers.records,
            "received_bytes": numbers.received_bytes,
            "sent_bytes": numbers.sent_bytes,
            "buffered_bytes": numbers.buffered_bytes,
            "threads": numbers.threads,
            "panics": numbers.panics,
            "connections_tls": numbers.by_channel[1],
            "connections_mtls": numbers.by_channel[2],
            "grants_keys": grants.keys,
            "grants_credentials": grants.credentials,
            "grants_revocations": grants.revocations,
            "tls_key": shown.as_ref().map(|key| key.public().to_string()),
            "tls_days_left": shown.as_ref().map(|key| key.days_left()),
        })
    }
}

fn offered_to(plan: &Plan, client: Option<IpAddr>) -> Value {
    match client {
        Some(client) => {
            plan.learn_name(client);
            visible_exports_json(plan, client)
        }
        None => plan.exports().iter().map(|export| export.path().display().to_string()).collect(),
    }
}
