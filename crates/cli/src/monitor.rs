//! The status monitor of NFSv3's locks: hears over UDP, too, which hosts have started anew, and
//! tells those that had locks that this server has.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use comity_export::Visitor;
use comity_nfs4::Memory;
use comity_proto::nsm::{PROGRAM, StatChge, VERSION, procedure};
use comity_rpc::Dispatcher;
use comity_server::{Datagrams, Errand};
use comity_xdr::{Encoder, Opaque};

use crate::service::status_monitor;

/// Hosts that are told at the same time. Most answer at once; who is gone costs a few seconds.
const TELLERS: usize = 8;

/// How long a host that could not be told is left alone.
const PAUSE: Duration = Duration::from_secs(1);

/// The way of hosts' status monitors to ours: they speak UDP.
pub(crate) struct Monitor(Vec<Datagrams>);

impl Monitor {
    /// Listens at these addresses. Where that cannot be had, hosts that start anew keep their locks
    /// until they ask for them again.
    pub(crate) fn start(memory: &Memory, state: i32, addresses: &[SocketAddr]) -> Self {
        let start = |&address: &SocketAddr| {
            let monitor = status_monitor(memory, state);
            let started = Datagrams::start(address, Dispatcher::new(vec![monitor]), Visitor::new);
            let warn = |error: &_| tracing::warn!(%address, %error, "no status monitor over UDP");
            started.inspect_err(warn).ok()
        };
        Self(addresses.iter().filter_map(start).collect())
    }

    /// Ends it.
    pub(crate) fn stop(self) {
        self.0.into_iter().for_each(Datagrams::shutdown);
    }
}

/// Tells hosts that this server has started anew, for the time in which they can reclaim; nobody
/// has to wait for it.
pub(crate) fn tell(hosts: Vec<IpAddr>, state: i32, time: Duration) {
    if hosts.is_empty() {
        return;
    }
    tracing::info!(hosts = hosts.len(), "hosts of NFSv3 with locks are told of the restart");
    let tellers = hosts.len().min(TELLERS);
    let call = Arc::new(started_anew(state));
    let (untold, until) = (Arc::new(Mutex::new(VecDeque::from(hosts))), Instant::now() + time);
    for _ in 0..tellers {
        let (untold, call) = (Arc::clone(&untold), Arc::clone(&call));
        let work = move || tell_all(&untold, &call, until);
        if let Err(error) = thread::Builder::new().name("teller".into()).spawn(work) {
            tracing::warn!(%error, "hosts are not told of the restart: no thread");
        }
    }
}

fn tell_all(untold: &Mutex<VecDeque<IpAddr>>, arguments: &[u8], until: Instant) {
    let hosts = || untold.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let Some(host) = hosts().pop_front() else { return };
        let (program, version, procedure) = (PROGRAM, VERSION, procedure::NOTIFY);
        let errand = Errand { program, version, procedure, arguments };
        let Err(error) = errand.run(host) else { continue };
        if Instant::now() >= until {
            tracing::warn!(%host, %error, "a host was not told of the restart: its locks are lost");
            continue;
        }
        hosts().push_back(host);
        thread::sleep(PAUSE);
    }
}

/// The arguments of SM_NOTIFY. Hosts go by the address it comes from as much as by the name.
fn started_anew(state: i32) -> Vec<u8> {
    let uname = rustix::system::uname();
    let mut encoder = Encoder::new();
    encoder.value(&StatChge { mon_name: Opaque(uname.nodename().to_bytes()), state });
    encoder.bytes().to_vec()
}
