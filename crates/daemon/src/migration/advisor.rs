//! Asks peers for their load, each in a thread of its own: a peer that does not answer delays
//! neither the others nor other requests to this server.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use comity_export::PeerServer;
use comity_load::ServerLoad;
use comity_migrate::MigrationClient;
use serde_json::{Value, json};

use super::MigrationParts;
use super::advice::advice_json;
use crate::limits::{LOAD_PATIENCE, LOAD_PEERS_MAX};
use crate::load::heard;

/// Time for which a request waits for answers. Other requests wait meanwhile.
const MOMENT: Duration = Duration::from_millis(100);

/// Advises which exports should move to which peer.
pub(crate) struct Advisor {
    parts: MigrationParts,
    asked: Mutex<Option<AskedPeers>>,
}

/// The loads of peers, or why they are not known.
pub(super) type PeerLoads = BTreeMap<String, Result<ServerLoad>>;

/// The peers that a command has asked.
struct AskedPeers {
    /// The number of the run of the command.
    run: u64,
    until: Instant,
    waiting: BTreeSet<String>,
    loads: PeerLoads,
    answers: Receiver<(String, Result<ServerLoad>)>,
}

impl Advisor {
    pub(crate) const fn new(parts: MigrationParts) -> Self {
        Self { parts, asked: Mutex::new(None) }
    }

    /// Begins to ask peers, or asks for the advice.
    ///
    /// # Errors
    /// There is no such peer, or another command is asking.
    pub(crate) fn advance(&self, with: &[String], run: u64) -> Result<Value> {
        let mut current = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut asked = match current.take() {
            Some(it) if it.run == run => it,
            Some(other) if other.until > Instant::now() => {
                *current = Some(other);
                bail!("another command asks the peers for their load; try again in some seconds");
            }
            _ => AskedPeers::ask(&self.parts, with, run)?,
        };
        if asked.is_answered() {
            return Ok(advice_json(&self.parts, &asked.concluded()));
        }
        let answer = json!({ "state": "asking", "waiting": asked.waiting });
        *current = Some(asked);
        Ok(answer)
    }
}

impl AskedPeers {
    fn ask(parts: &MigrationParts, with: &[String], run: u64) -> Result<Self> {
        let peers = chosen(parts, with)?;
        let (told, answers) = channel();
        for peer in &peers {
            ask_for_load(parts, peer.clone(), told.clone())?;
        }
        let waiting = peers.iter().map(|peer| peer.name.to_string()).collect();
        let until = Instant::now() + LOAD_PATIENCE;
        Ok(Self { run, until, waiting, loads: PeerLoads::new(), answers })
    }

    /// Waits a moment for answers. Returns whether no further one is waited for.
    fn is_answered(&mut self) -> bool {
        let moment = Instant::now() + MOMENT;
        while !self.waiting.is_empty() {
            let left = moment.saturating_duration_since(Instant::now());
            match self.answers.recv_timeout(left) {
                Ok((peer, load)) => {
                    self.waiting.remove(&peer);
                    self.loads.insert(peer, load);
                }
                Err(RecvTimeoutError::Timeout) => return Instant::now() > self.until,
                Err(RecvTimeoutError::Disconnected) => return true,
            }
        }
        true
    }

    /// Returns the loads; those that still wait have not answered.
    fn concluded(self) -> PeerLoads {
        let seconds = LOAD_PATIENCE.as_secs();
        let silent = |peer| (peer, Err(anyhow!("it did not answer within {seconds} s")));
        self.loads.into_iter().chain(self.waiting.into_iter().map(silent)).collect()
    }
}

/// Returns the peers with these names, or all if there is no name.
fn chosen(parts: &MigrationParts, with: &[String]) -> Result<Vec<PeerServer>> {
    let plan = Arc::clone(&parts.exports.current());
    let names: BTreeSet<&str> = match with {
        [] => plan.peers().iter().map(|peer| &*peer.name).collect(),
        names => names.iter().map(String::as_str).collect(),
    };
    let count = names.len();
    ensure!(count > 0, "the configuration has no [[peer]] to which exports could move");
    ensure!(count <= LOAD_PEERS_MAX, "name at most {LOAD_PEERS_MAX} of the {count} peers");
    let found = |name| {
        let peer = plan.peer_named(name).cloned();
        peer.with_context(|| format!("the configuration has no [[peer]] {name}"))
    };
    names.into_iter().map(found).collect()
}

fn ask_for_load(
    parts: &MigrationParts,
    peer: PeerServer,
    told: Sender<(String, Result<ServerLoad>)>,
) -> Result<()> {
    let identity = parts.identity()?;
    let ask = move || {
        let load = MigrationClient::load(&peer, identity, LOAD_PATIENCE);
        // The command may have ended, so that nobody receives the load.
        let load = load.map(|reply| heard(&reply)).map_err(Into::into);
        drop(told.send((peer.name.into(), load)));
    };
    let thread = thread::Builder::new().name("peer load".into()).spawn(ask);
    thread.map(drop).context("the system starts no thread to ask a peer; try again")
}
