//! The status monitor for NFSv3 locks: it learns by UDP which hosts have restarted, and notifies
//! hosts that had locks when this server restarts.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use comity_export::RpcPeer;
use comity_proto::nsm::{PROGRAM, StatChge, VERSION, procedure};
use comity_rpc::{Dispatcher, Gate};
use comity_server::{Datagrams, RemoteCall};
use comity_xdr::{Encoder, Opaque};
use siphasher::sip::SipHasher24;

/// Hosts that are notified at the same time. Most answer at once; one that is down costs a few
/// seconds.
const TELLERS: usize = 8;

/// Pause before a host that could not be notified is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// The UDP sockets of the status monitor, because hosts' status monitors use UDP; some lock
/// managers use it, too.
pub(crate) struct Statd(Vec<Datagrams>);

/// The notification that this server has restarted.
#[derive(Debug, Clone)]
pub(crate) struct Notification {
    /// The state number of this server's status monitor.
    pub(crate) state: i32,
    /// The addresses from which hosts are notified: they identify a server by the address that they
    /// used.
    pub(crate) sources: Vec<IpAddr>,
}

/// The addresses by which hosts may know the server; none if it listens on all addresses.
pub(crate) fn sources(addresses: &[SocketAddr]) -> Vec<IpAddr> {
    let mut sources: Vec<_> = addresses.iter().map(|address| address.ip().to_canonical()).collect();
    sources.retain(|source| !source.is_unspecified());
    sources.sort_unstable();
    sources.dedup();
    sources
}

/// Returns the address of an NLM host, whose name is its address.
pub(crate) fn address(name: &[u8]) -> Option<IpAddr> {
    std::str::from_utf8(name).ok()?.parse().ok()
}

impl Notification {
    /// Returns the notification that the server which has the locks of hosts of this one has
    /// restarted. A host heeds a notification only if its state number differs from the one before,
    /// so that the number depends on this `run` of that server, too.
    pub(crate) fn of_peer(&self, run: u64) -> Self {
        let mixed = SipHasher24::new().hash(format!("{} {run}", self.state).as_bytes());
        let state = (mixed as u32 & i32::MAX as u32) | 1;
        Self { state: state.cast_signed(), sources: self.sources.clone() }
    }
}

impl Statd {
    /// Listens at these addresses, with a dispatcher each. If this fails, hosts that restart keep
    /// their locks until they ask for them again.
    pub(crate) fn start<G: Gate<RpcPeer> + 'static>(
        dispatcher: impl Fn() -> Dispatcher<RpcPeer, G>,
        addresses: &[SocketAddr],
    ) -> Self {
        let start = |&address: &SocketAddr| {
            let local = Some(address.ip()).filter(|local| !local.is_unspecified());
            let visitor = move |peer| RpcPeer::new(peer).at(local);
            let started = Datagrams::start(address, dispatcher(), visitor);
            let warn = |error: &_| tracing::warn!(%address, %error, "no status monitor over UDP");
            started.inspect_err(warn).ok()
        };
        Self(addresses.iter().filter_map(start).collect())
    }

    /// Closes the sockets.
    pub(crate) fn stop(self) {
        self.0.into_iter().for_each(Datagrams::shutdown);
    }
}

/// Notifies hosts in the background that this server has restarted, for the time in which they can
/// reclaim.
pub(crate) fn tell(hosts: Vec<IpAddr>, news: Notification, time: Duration) {
    if hosts.is_empty() {
        return;
    }
    tracing::info!(hosts = hosts.len(), "NFSv3 hosts with locks are notified of the restart");
    let tellers = hosts.len().min(TELLERS);
    let call = Arc::new((started_anew(news.state), news.sources));
    let (untold, until) = (Arc::new(Mutex::new(VecDeque::from(hosts))), Instant::now() + time);
    for _ in 0..tellers {
        let (untold, call) = (Arc::clone(&untold), Arc::clone(&call));
        let work = move || tell_all(&untold, &call, until);
        if let Err(error) = thread::Builder::new().name("teller".into()).spawn(work) {
            tracing::warn!(%error, "hosts are not notified of the restart: no thread");
        }
    }
}

fn tell_all(
    untold: &Mutex<VecDeque<IpAddr>>,
    (arguments, sources): &(Vec<u8>, Vec<IpAddr>),
    until: Instant,
) {
    let hosts = || untold.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let Some(host) = hosts().pop_front() else { return };
        let Err(error) = tell_from(host, sources, arguments) else { continue };
        if Instant::now() >= until {
            tracing::warn!(%host, %error, "a host that was not notified may lose its locks");
            continue;
        }
        hosts().push_back(host);
        thread::sleep(PAUSE);
    }
}

/// Notifies a host of the restart from every address by which it may know the server, since nothing
/// records which one it used. A host ignores messages from addresses that it does not know.
fn tell_from(host: IpAddr, sources: &[IpAddr], arguments: &[u8]) -> io::Result<()> {
    let fitting = sources.iter().filter(|source| source.is_ipv4() == host.is_ipv4());
    let mut from: Vec<_> = fitting.copied().map(Some).collect();
    if from.is_empty() {
        from.push(None);
    }
    let (program, version, procedure) = (PROGRAM, VERSION, procedure::NOTIFY);
    let tell = |source| {
        let call = RemoteCall { program, version, procedure, arguments, source };
        call.run(host).map(drop).map_err(io::Error::from)
    };
    // The last error, if no notification succeeded.
    from.into_iter().map(tell).reduce(|one, other| one.or(other)).unwrap_or(Ok(()))
}

/// The arguments of SM_NOTIFY. Hosts use its source address as well as the name.
fn started_anew(state: i32) -> Vec<u8> {
    let uname = rustix::system::uname();
    let mut encoder = Encoder::new();
    encoder.value(&StatChge { mon_name: Opaque(uname.nodename().to_bytes()), state });
    encoder.bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_differs_when_either_server_has_restarted() {
        let of = |state, run| Notification { state, sources: Vec::new() }.of_peer(run).state;
        let states = [of(1, 4), of(3, 4), of(1, 6), of(1, 4 << 32 | 8)];
        assert!(states.iter().all(|state| *state > 0 && state % 2 == 1), "{states:?}");
        let different: std::collections::BTreeSet<_> = states.iter().collect();
        assert_eq!(different.len(), states.len(), "{states:?}");
    }

    #[test]
    fn hosts_know_the_server_by_the_addresses_it_listens_at() {
        let addresses = ["10.0.0.1:2049", "[::ffff:10.0.0.1]:2049", "[2001:db8::1]:2049"];
        let addresses = addresses.map(|address| address.parse().unwrap());
        assert_eq!(
            sources(&addresses),
            ["10.0.0.1", "2001:db8::1"].map(|ip| ip.parse::<IpAddr>().unwrap())
        );
        assert!(sources(&["0.0.0.0:2049".parse().unwrap(), "[::]:1".parse().unwrap()]).is_empty());
    }
}
