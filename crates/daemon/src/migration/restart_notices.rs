//! The source's side of restarts: hosts of NFSv3 whose calls are forwarded know both servers by the
//! addresses of this one, and reclaim their locks when it notifies them.

use std::collections::{BTreeSet, HashMap};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use comity_export::PeerServer;
use comity_migrate::{ForwardingHosts, MigrationClient};
use comity_server::LogRateLimit;

use super::MigrationParts;
use crate::limits::FORWARD_PATIENCE;
use crate::statd::{self, Notification};
use crate::state_service::each_second;

/// The numbers of the runs of peers that have locks of hosts of this server.
#[derive(Debug, Default)]
pub(crate) struct PeerRuns(Mutex<HashMap<String, u64>>);

impl PeerRuns {
    /// Notes the run of a peer, unless one is known already.
    pub(super) fn note_first(&self, peer: &str, run: u64) {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.entry(peer.to_owned()).or_insert(run);
    }

    /// Notes the run of a peer. Returns the one before, if any is known.
    pub(super) fn note(&self, peer: &str, run: u64) -> Option<u64> {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.insert(peer.to_owned(), run)
    }
}

/// Watches the peers that have locks of hosts of this server.
struct RestartNotices {
    parts: MigrationParts,
    news: Notification,
    /// The peers that had such locks when this server started, and have not answered since.
    silent: BTreeSet<String>,
    connections: HashMap<String, (PeerServer, MigrationClient)>,
}

/// Asks each second whether the peers to which calls are forwarded have restarted, until what it
/// returns is dropped. If one has, or if this server has, the hosts that have locks there are
/// notified.
///
/// # Errors
/// The thread cannot be created.
pub(crate) fn notify_of_restarts(parts: &MigrationParts, news: Notification) -> Result<Sender<()>> {
    let (parts, silent) = (parts.clone(), parts.moved.all_forwarded_to());
    let mut notices = RestartNotices { parts, news, silent, connections: HashMap::new() };
    let thread = each_second("notices", move || notices.pass());
    let (stop, _) = thread.context("cannot start the thread that notifies hosts of restarts")?;
    Ok(stop)
}

impl RestartNotices {
    fn pass(&mut self) {
        static LOG: LogRateLimit = LogRateLimit::new();
        let names = self.parts.moved.all_forwarded_to();
        self.connections.retain(|name, _| names.contains(name));
        for peer in names {
            if let Err(why) = self.ask(&peer) {
                LOG.say(|suppressed| {
                    tracing::warn!(%peer, suppressed, "it has not told who has locks: {why:#}");
                });
            }
        }
    }

    fn ask(&mut self, name: &str) -> Result<()> {
        // The peer is copied, so that the plan is not kept while the peer answers.
        let peer = self.parts.exports.current().peer_named(name).cloned();
        let peer = peer.context("the configuration has no such [[peer]]")?;
        let kept = self.connections.remove(name).filter(|(known, _)| *known == peer);
        let mut connection = match kept {
            Some((_, kept)) => kept,
            None => MigrationClient::connect(&peer, self.parts.identity()?)?,
        };
        let ForwardingHosts { run, hosts } = connection.hosts(FORWARD_PATIENCE)?;
        self.connections.insert(name.to_owned(), (peer, connection));
        let before = self.parts.peer_runs.note(name, run);
        // The hosts of a peer that has not answered since this server started are notified in any
        // case.
        if self.silent.remove(name) || before.is_some_and(|before| before != run) {
            let time = self.parts.memory.engine.settings().grace;
            statd::tell(hosts, self.news.of_peer(run), time);
        }
        Ok(())
    }
}
