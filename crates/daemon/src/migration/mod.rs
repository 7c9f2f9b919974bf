//! Exports move between servers with the state of their clients: the source's side, the target's
//! side, and the table in which both store what they have decided.
//!
//! After each step one server at most serves an export. The source stops serving it before it
//! reads the clients' state. It stores that the export leaves before it asks the target to take it;
//! from then on the target decides, and a source that got no answer asks for the outcome. The
//! target stores that it has taken the export before it serves it.

mod advice;
mod advisor;
mod arrivals;
mod departure;
mod forwarded_calls;
mod forwarder;
mod freeze;
mod migrations;
mod moved_exports;
mod outcome;
mod restart_notices;
mod transfer;
mod warnings;

pub(crate) use advisor::Advisor;
pub(crate) use arrivals::{Arrivals, check_files, check_marks, paths_of};
pub(crate) use departure::Moved;
pub(crate) use forwarded_calls::ForwardedPrograms;
pub(crate) use forwarder::Forwarder;
pub(crate) use freeze::{Frozen, offer_of, rehearse};
pub(crate) use migrations::{
    MOVING, MigrationStep, MigrationThreads, Migrations, PreparedMigration,
};
pub(crate) use moved_exports::MovedExports;
pub(crate) use outcome::ask_for_outcomes;
pub(crate) use restart_notices::{PeerRuns, notify_of_restarts};
pub(crate) use transfer::Transfers;

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use comity_export::Exports;
use comity_migrate::CallFailure;
use comity_nfs4::Memory;
use comity_proto::migration::MigrationId;
use comity_state::{ClientProtocol, ExportedVolume};
use comity_tls::client::ClientIdentity;

use crate::configuration::{PlanTurn, Reload};
use crate::load::Load;
use crate::options::Options;
use crate::tls::Tls;

/// The parts of the server that a migration needs.
#[derive(Clone)]
pub(crate) struct MigrationParts {
    pub(crate) exports: Arc<Exports>,
    pub(crate) memory: Memory,
    pub(crate) reload: Arc<Reload>,
    pub(crate) moved: Arc<MovedExports>,
    pub(crate) peer_runs: Arc<PeerRuns>,
    pub(crate) tls: Option<Arc<Tls>>,
    /// The current load.
    pub(crate) load: Arc<Mutex<Load>>,
    /// True if the server serves NFSv3.
    pub(crate) serves_three: bool,
    /// The reason why this server moves nothing, if there is one.
    pub(crate) refusal: Option<&'static str>,
}

/// The reason why a server with local locks moves nothing.
pub(crate) const LOCAL_LOCKS: &str = "the server shares locks with local programs, and such locks \
    do not move: start it with --no-local-locks";

/// The reason why a head of a cluster moves nothing.
const IN_CLUSTER: &str = "the server is a head of a cluster, in which etcd decides \
    which server has an export: move it with `comity cluster move`";

impl MigrationParts {
    /// Takes the right to replace the plan for exports that arrive, or refuses at once. A move from
    /// this server holds it as well: if this waited, two servers that move exports to each other
    /// would wait for each other.
    pub(crate) fn turn(&self) -> Result<PlanTurn<'_>, CallFailure> {
        let turn = self.reload.try_turn();
        turn.ok_or_else(|| CallFailure::at_present("it is moving exports itself, or reloads"))
    }

    /// The key by which this server proves to a peer who it is.
    pub(crate) fn identity(&self) -> anyhow::Result<Arc<ClientIdentity>> {
        match &self.tls {
            Some(tls) => Ok(Arc::new(ClientIdentity::of_server(&tls.shown()))),
            None => anyhow::bail!(
                "TLS is off, and peers know each other by it: start the server without --no-tls"
            ),
        }
    }

    /// Forgets the state of exports that another server has.
    fn forget(&self, volume: u64, ids: &[u32]) {
        let comity_nfs4::Memory { engine, clock, .. } = &self.memory;
        engine.forget_volume(clock.now(), volume, ids);
    }
}

/// Returns the reason why a server with these options moves nothing, if there is one.
pub(crate) fn refusal(options: &Options) -> Option<&'static str> {
    match &options.cluster {
        Some(_) => Some(IN_CLUSTER),
        None => options.local_locks.then_some(LOCAL_LOCKS),
    }
}

/// Writes a migration as hexadecimal digits.
pub(crate) fn hexadecimal(id: &MigrationId) -> String {
    format!("{:032x}", u128::from_be_bytes(*id))
}

/// The volume has state that its holder could not use at another server.
#[derive(Debug, PartialEq, Eq)]
struct HostHolds(String);

impl fmt::Display for HostHolds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = &self.0;
        write!(
            f,
            "the host {host} holds locks by NFSv3, which has no way to follow: forward its calls \
             with --proxy-for SECONDS, have its programs release them, or evict it (`comity \
             clients` shows its number)"
        )
    }
}

impl std::error::Error for HostHolds {}

/// Checks that all state can be used at another server. Calls of hosts that are known by their
/// address may be forwarded, those over TLS are not.
fn check_followers(volume: &ExportedVolume, is_forwarded: bool) -> Result<(), HostHolds> {
    let is_reached = |name: &[u8]| {
        is_forwarded && std::str::from_utf8(name).is_ok_and(|name| name.parse::<IpAddr>().is_ok())
    };
    let mut hosts = volume.clients.iter().filter(|client| client.protocol == ClientProtocol::Nlm);
    let host = hosts.find(|host| !is_reached(&host.name.id));
    host.map_or(Ok(()), |host| Err(HostHolds(String::from_utf8_lossy(&host.name.id).into_owned())))
}
