//! The clients' state, with the threads that drive its clock and its copies.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result};
use comity_backend::LeaseWatch;
use comity_export::{Exports, derived_key};
use comity_nfs3::Grants;
use comity_nfs4::{Callbacks, Clock, Dialed, Memory, ServerIdentity};
use comity_proto::nlm;
use comity_rpc::Backchannel;
use comity_server::{CallError, RemoteCall, blocking_on_peers};
use comity_state::{Client, Effect, Engine, Limits, Settings};
use comity_store::Store;
use comity_vfs::AsServer;
use siphasher::sip::SipHasher24;

use crate::copier::Copier;
use crate::fencer::Fencer;
use crate::grant_service::GrantService;
use crate::host_queue::HostQueue;
use crate::lease_break_watcher::LeaseBreakWatcher;
use crate::local_locks::LocalLocks;
use crate::mirror_watch::MirrorWatch;
use crate::rights_watch::RightsWatch;
use crate::size_watch::SizeWatch;
use crate::statd::{self, Notification, address};
use crate::storage::{Repair, settle};

/// The period of the clock: leases, recalls and waits end with a resolution of one second.
const TICK: Duration = Duration::from_secs(1);

/// The file in the state folder with client records that survive a restart.
const CLIENTS: &str = "clients";

type Dialer = dyn Fn(SocketAddr) -> io::Result<Arc<Backchannel>> + Send + Sync;

/// The clients' state, with the threads that maintain it.
pub(crate) struct StateService {
    memory: Memory,
    callbacks: Arc<Callbacks>,
    dialer: Arc<OnceLock<Box<Dialer>>>,
    store: Arc<Store>,
    hosts: Vec<IpAddr>,
    lease_breaks: Option<LeaseBreakWatcher>,
    copier: Arc<Copier>,
    exports: Arc<Exports>,
    grants: Arc<GrantService>,
    watch: Option<Watch>,
}

/// Threads, with the senders that end them when dropped.
type Watch = (Vec<Sender<()>>, Vec<JoinHandle<()>>);

/// Parameters of the clients' state.
pub(crate) struct StateOptions<'a> {
    /// Random bytes that differ in every run of the server.
    pub(crate) life: [u8; 8],
    /// A secret that is the same in every run, and different from other servers'. Keys for single
    /// purposes are derived from it.
    pub(crate) key: &'a [u8; 16],
    /// Bytes that tell this server from others with the same secret, and are the same in every run.
    pub(crate) server_id: &'a [u8; 8],
    /// Length of a lease.
    pub(crate) lease_seconds: u32,
    /// True if clients may reclaim state after a restart. Those of a data server have none there
    /// to reclaim.
    pub(crate) has_grace: bool,
    /// Limits of the state.
    pub(crate) limits: Limits,
    /// The watch that reports accesses of local programs. With it, programs and clients respect
    /// each other's locks and opens.
    pub(crate) leases: Option<Arc<LeaseWatch>>,
    /// The records of clients.
    pub(crate) store: Store,
    /// The exports in force.
    pub(crate) exports: &'a Arc<Exports>,
    /// The grants of keys.
    pub(crate) grants: &'a Arc<GrantService>,
}

/// Opens the records of clients in a state folder.
///
/// # Errors
/// They cannot be read; the error says what to do.
pub(crate) fn open_store(state_folder: &Path) -> Result<Store> {
    Ok(Store::open(&AsServer::here()?, &state_folder.join(CLIENTS))?)
}

impl StateService {
    /// Begins with the state that an earlier run of the server stored.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(crate) fn new(beginning: StateOptions<'_>) -> Result<Self> {
        let [a, b, c, d, ..] = beginning.life;
        let lease = Duration::from_secs(beginning.lease_seconds.into());
        let secret = derived_key(beginning.key, "sessions");
        let usual = Settings::new(u32::from_be_bytes([a, b, c, d]), secret);
        let locals = beginning.leases.is_some();
        let limits = beginning.limits;
        let grace = if beginning.has_grace { lease } else { Duration::ZERO };
        let settings = Settings { lease, grace, durable: true, locals, limits, ..usual };
        let store = Arc::new(beginning.store);
        let (clock, recovered) = (Clock::start(), store.recovered());
        let hosts = recovered.hosts().filter_map(address).collect();
        let engine = Arc::new(Engine::new(clock.now(), settings, recovered));
        if !beginning.has_grace {
            // A grace period of no length is over.
            engine.tick(clock.now());
        }
        if engine.is_in_grace() {
            let seconds = beginning.lease_seconds;
            tracing::info!(
                seconds,
                "grace period: earlier clients may reclaim their state; others wait"
            );
        }
        let dialer = Arc::new(OnceLock::new());
        let locals = locals.then(|| -> Arc<dyn comity_state::Locals> {
            Arc::new(LocalLocks::new(Arc::clone(&engine), Arc::clone(beginning.exports)))
        });
        let copier = Arc::<Copier>::default();
        let settle = settle(&engine, &store);
        let grants = Grants::new(Arc::clone(&engine), Arc::clone(beginning.exports));
        let grants = grants.beside(locals.clone()).settling(Arc::clone(&settle));
        let callbacks = callbacks(&engine, clock, (beginning.exports, grants), &dialer);
        let memory = Memory {
            engine: Arc::clone(&engine),
            clock,
            identity: identity(beginning.key, beginning.server_id),
            callbacks: Some(Arc::clone(&callbacks)),
            settle: Some(settle),
            pause: Some(Arc::new(|moment| blocking_on_peers(|| thread::sleep(moment)))),
            locals,
            copier: Some(copying(&copier)),
        };
        let watch = |leases| LeaseBreakWatcher::watch(leases, memory.clone(), beginning.exports);
        let lease_breaks = beginning.leases.as_ref().map(watch).transpose()?;
        let exports = Arc::clone(beginning.exports);
        let (grants, watch) = (Arc::clone(beginning.grants), None);
        Ok(Self {
            memory,
            callbacks,
            dialer,
            store,
            hosts,
            lease_breaks,
            copier,
            exports,
            grants,
            watch,
        })
    }

    /// Returns the clients' state.
    pub(crate) fn memory(&self) -> Memory {
        self.memory.clone()
    }

    /// Returns the state number of this server's status monitor, which differs in every run of the
    /// server.
    pub(crate) fn monitor_state(&self) -> i32 {
        monitor_state(self.store.starts())
    }

    /// Returns the notification of hosts that this server has restarted; `addresses` are those on
    /// which it listens.
    pub(crate) fn notification(&self, addresses: &[SocketAddr]) -> Notification {
        Notification { state: self.monitor_state(), sources: statd::sources(addresses) }
    }

    /// Returns the store of the clients' state.
    pub(crate) fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// Starts the clock. `dialer` connects to clients, and `addresses` are those on which the
    /// server listens.
    ///
    /// # Errors
    /// A thread cannot be created.
    pub(crate) fn begin(
        &mut self,
        dialer: impl Fn(SocketAddr) -> io::Result<Arc<Backchannel>> + Send + Sync + 'static,
        addresses: &[SocketAddr],
    ) -> Result<()> {
        let news = self.notification(addresses);
        let hosts = std::mem::take(&mut self.hosts);
        statd::tell(hosts, news, self.memory.engine.settings().grace);
        // This is the only place that sets the cell.
        let _ = self.dialer.set(Box::new(dialer));
        let (memory, callbacks) = (self.memory.clone(), Arc::clone(&self.callbacks));
        let mut repair = Repair::new(Arc::clone(&memory.engine), Arc::clone(&self.store));
        let mut rights = RightsWatch::new((&memory, &callbacks), &self.exports, &self.grants);
        let mut fencer = Fencer::new(&memory, &self.exports);
        let mirrors = MirrorWatch::new(&memory, &self.exports);
        let mut sizes = SizeWatch::new(&memory, &self.exports);
        let keep = move || {
            pass(&memory, &callbacks);
            repair.pass();
        };
        let state_service = each_second("state", keep);
        let state_service = state_service.context("cannot start the thread that watches leases")?;
        let exports = Arc::clone(&self.exports);
        let tidier =
            each_second("tidier", move || Arc::clone(&exports.current()).release_removed());
        let tidier = tidier.context("cannot start the thread that closes removed files")?;
        let exports = Arc::clone(&self.exports);
        let labels = each_second("labels", move || exports.current().write_labels());
        let labels = labels.context("cannot start the thread that labels data files")?;
        let rights = each_second("rights", move || rights.pass());
        let rights = rights.context("cannot start the thread that watches rights")?;
        let fences = each_second("fences", move || {
            fencer.pass();
            mirrors.pass();
        });
        let fences = fences.context("cannot start the thread that raises fences")?;
        let sizes = each_second("sizes", move || sizes.pass());
        let sizes = sizes.context("cannot start the thread that asks for sizes")?;
        let (callbacks, clock) = (Arc::clone(&self.callbacks), self.memory.clock);
        let mut threads = self.copier.begin(move || callbacks.pump(clock.now()))?;
        let started = [state_service, tidier, labels, rights, fences, sizes];
        let (stop, others): (Vec<_>, Vec<_>) = started.into_iter().unzip();
        threads.extend(others);
        self.watch = Some((stop, threads));
        Ok(())
    }

    /// Stops the clock and the threads.
    pub(crate) fn stop(self) {
        self.lease_breaks.into_iter().for_each(LeaseBreakWatcher::stop);
        self.copier.stop();
        if let Some((stop, threads)) = self.watch {
            drop(stop);
            // These threads do not panic; if one did, the log would show it.
            threads.into_iter().for_each(|thread| drop(thread.join()));
        }
        self.grants.end();
    }
}

/// Calls `work` each second, until the sender is dropped.
pub(crate) fn each_second(
    name: &str,
    mut work: impl FnMut() + Send + 'static,
) -> io::Result<(Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = mpsc::channel();
    let work = move || {
        while stopped.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
            work();
        }
    };
    Ok((stop, thread::Builder::new().name(name.into()).spawn(work)?))
}

/// Passes copies to the threads that execute them.
fn copying(copier: &Arc<Copier>) -> Arc<comity_nfs4::Copier> {
    let copier = Arc::clone(copier);
    Arc::new(move |copying| copier.take(copying))
}

/// Returns the state number of a status monitor after this many starts. It is odd, which means that
/// the host is up.
const fn monitor_state(starts: u32) -> i32 {
    (starts.wrapping_mul(2).wrapping_sub(1) & i32::MAX as u32) as i32
}

/// Does the periodic work: leases, callbacks, locks of local programs.
fn pass(memory: &Memory, callbacks: &Arc<Callbacks>) {
    let now = memory.clock.now();
    memory.engine.tick(now);
    callbacks.tick(now);
    memory.locals.iter().for_each(|locals| locals.settle());
    // A failure to store is logged.
    let _ = memory.engine.is_settled(memory.settle.as_deref());
}

fn callbacks(
    engine: &Arc<Engine>,
    clock: Clock,
    (exports, grants): (&Arc<Exports>, Grants),
    dialer: &Arc<OnceLock<Box<Dialer>>>,
) -> Arc<Callbacks> {
    let (dialer, queue) = (Arc::clone(dialer), HostQueue::default());
    let dials = queue.clone();
    let dial = move |address: SocketAddr, done: Dialed| {
        let dialer = Arc::clone(&dialer);
        dials.run(address.ip(), move || {
            let early = || Err(io::Error::other("the server has not started"));
            done(dialer.get().map_or_else(early, |dial| dial(address)));
        });
    };
    let grants = Arc::new(grants);
    // A silent host blocks a thread for seconds, so grants have another queue.
    let (engine, questions) = (Arc::clone(engine), HostQueue::default());
    let asking = Arc::clone(&engine);
    let others = move |effect: Effect| {
        let Some(host) = host_of(&effect) else { return };
        if let Effect::Probe { client } = effect {
            let engine = Arc::clone(&asking);
            return questions.run(host, move || ask(&engine, clock, (&client, host)));
        }
        let grants = Arc::clone(&grants);
        queue.run(host, move || tell(&grants, clock, effect));
    };
    let exports = Arc::clone(exports);
    Arc::new(Callbacks::new(engine, exports, Box::new(dial), Box::new(others)))
}

/// The NFSv3 host to which an effect applies.
fn host_of(effect: &Effect) -> Option<IpAddr> {
    match effect {
        Effect::NotifyLock { client, .. } | Effect::Probe { client } => address(client.owner()),
        _ => None,
    }
}

/// Asks whether an NFSv3 host is still up, by a NULL call to its lock manager.
fn ask(engine: &Engine, clock: Clock, (client, host): (&Client, IpAddr)) {
    let call = RemoteCall {
        program: nlm::PROGRAM,
        version: nlm::VERSION,
        procedure: nlm::procedure::NULL,
        arguments: &[],
        source: None,
    };
    let answered = call.run(host);
    if let Err(error) = &answered {
        tracing::info!(%host, %error, "a host that holds locks does not answer");
    }
    engine.host_answered(clock.now(), client, answered.is_ok());
}

/// Grants a lock to an NFSv3 host that waits for it, and notifies the host.
fn tell(grants: &Grants, clock: Clock, effect: Effect) {
    let Some(grant) = grants.take(clock.now(), effect) else { return };
    let call = RemoteCall {
        program: nlm::PROGRAM,
        version: nlm::VERSION,
        procedure: nlm::procedure::GRANTED,
        arguments: &grant.arguments,
        source: grant.source,
    };
    match call.run(grant.address) {
        Ok(results) => grants.answered(clock.now(), &grant, &results),
        Err(error) => {
            let host = grant.address;
            tracing::info!(%host, %error, "cannot notify a host of its granted lock");
            if matches!(error, CallError::Unsent(_)) {
                grants.withdraw(clock.now(), &grant);
            }
        }
    }
}

/// The names by which clients identify the server. They reveal nothing about the key. Servers with
/// the same key have the same scope.
fn identity(key: &[u8; 16], server_id: &[u8; 8]) -> ServerIdentity {
    let own = derived_key(key, "server owner");
    let name = SipHasher24::new_with_key(&own).hash(b"server owner");
    let scope = format!("comity {name:016x}");
    let owner = format!("{scope} {:016x}", u64::from_be_bytes(*server_id));
    ServerIdentity { owner: owner.into_bytes().into(), scope: scope.into_bytes().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_of_a_monitor_that_is_up_is_odd() {
        assert_eq!([1, 2, 3, u32::MAX].map(monitor_state), [1, 3, 5, i32::MAX - 2]);
    }

    #[test]
    fn a_servers_name_is_unique_and_survives_restarts() {
        let [one, again, other, sibling] =
            [(1, 1), (1, 1), (2, 1), (1, 2)].map(|(key, id)| identity(&[key; 16], &[id; 8]));
        assert_eq!((&one.owner, &one.scope), (&again.owner, &again.scope));
        assert!(one.owner != other.owner && one.scope != other.scope);
        assert!(one.owner != sibling.owner && one.scope == sibling.scope);
    }
}
