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

/// Watches the peers that have locks of hosts of this server, each in a thread of its own: one that
/// does not answer delays no news about the others.
struct RestartNotices {
    parts: MigrationParts,
    news: Notification,
    /// The peers that had such locks when this server started.
    since_start: BTreeSet<String>,
    /// The thread of each peer ends when its sender here is dropped.
    watched: HashMap<String, Sender<()>>,
}

/// Watches one peer.
struct PeerWatch {
    parts: MigrationParts,
    news: Notification,
    name: String,
    /// True until the peer has answered, if it had locks of hosts when this server started.
    is_silent: bool,
    connection: Option<(PeerServer, MigrationClient)>,
}

/// Asks each second whether the peers to which calls are forwarded have restarted, until what it
/// returns is dropped. If one has, or if this server has, the hosts that have locks there are
/// notified.
///
/// # Errors
/// The thread cannot be created.
pub(crate) fn notify_of_restarts(parts: &MigrationParts, news: Notification) -> Result<Sender<()>> {
    let (parts, since_start) = (parts.clone(), parts.moved.all_forwarded_to());
    let mut notices = RestartNotices { parts, news, since_start, watched: HashMap::new() };
    let thread = each_second("notices", move || notices.pass());
    let (stop, _) = thread.context("cannot start the thread that notifies hosts of restarts")?;
    Ok(stop)
}

impl RestartNotices {
    /// Begins to watch peers that got locks, and ends it for those that have none any more.
    fn pass(&mut self) {
        static LOG: LogRateLimit = LogRateLimit::new();
        let names = self.parts.moved.all_forwarded_to();
        self.watched.retain(|name, _| names.contains(name));
        for name in names {
            if self.watched.contains_key(&name) {
                continue;
            }
            match each_second("peer notices", self.watch(&name)) {
                Ok((stop, _)) => {
                    self.since_start.remove(&name);
                    self.watched.insert(name, stop);
                }
                Err(why) => LOG.say(|suppressed| {
                    tracing::warn!(peer = %name, suppressed, "it is not watched: {why:#}");
                }),
            }
        }
    }

    fn watch(&self, name: &str) -> impl FnMut() + Send + use<> {
        let mut watch = PeerWatch {
            parts: self.parts.clone(),
            news: self.news.clone(),
            name: name.to_owned(),
            is_silent: self.since_start.contains(name),
            connection: None,
        };
        move || watch.pass()
    }
}

impl PeerWatch {
    fn pass(&mut self) {
        static LOG: LogRateLimit = LogRateLimit::new();
        if let Err(why) = self.ask() {
            LOG.say(|suppressed| {
                tracing::warn!(
                    peer = %self.name, suppressed, "it has not told who has locks: {why:#}"
                );
            });
        }
    }

    fn ask(&mut self) -> Result<()> {
        // The peer is copied, so that the plan is not kept while the peer answers.
        let peer = self.parts.exports.current().peer_named(&self.name).cloned();
        let peer = peer.context("the configuration has no such [[peer]]")?;
        let kept = self.connection.take().filter(|(known, _)| *known == peer);
        let mut connection = match kept {
            Some((_, kept)) => kept,
            None => MigrationClient::connect(&peer, self.parts.identity()?)?,
        };
        let ForwardingHosts { run, hosts } = connection.hosts(FORWARD_PATIENCE)?;
        self.connection = Some((peer, connection));
        let before = self.parts.peer_runs.note(&self.name, run);
        // The hosts of a peer that has not answered since this server started are notified in any
        // case.
        let is_first = std::mem::take(&mut self.is_silent);
        if is_first || before.is_some_and(|before| before != run) {
            let time = self.parts.memory.engine.settings().grace;
            statd::tell(hosts, self.news.of_peer(run), time);
        }
        Ok(())
    }
}
