use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use comity_proto::portmap::{PORTMAP_VERSION, PROGRAM, RPCBIND_VERSION_3, RPCBIND_VERSION_4};
use comity_rpc::{Answered, Dispatcher, Line};
use comity_xdr::Encoder;

use super::program::PortmapProgram;
use super::{Offered, both_versions};
use crate::limits::{DATAGRAM_BYTES_MAX, PORTMAP_CONNECTIONS_MAX, PORTMAP_STOP_MS};
use crate::server::{Server, StartError};
use crate::service::Service;
use crate::settings::{Patience, Settings};

/// A portmapper of our own, over TCP and UDP, that knows our programs only and takes no others.
pub struct Portmapper {
    server: Server<PortmapService>,
    stop: Arc<AtomicBool>,
    datagrams: Vec<JoinHandle<()>>,
}

/// The versions it speaks, the newest first.
const VERSIONS: [u32; 3] = [RPCBIND_VERSION_4, RPCBIND_VERSION_3, PORTMAP_VERSION];

/// Why it does not start.
#[derive(Debug, thiserror::Error)]
pub enum PortmapError {
    /// Over TCP.
    #[error("portmapper: {0}")]
    Tcp(#[from] StartError),
    /// Over UDP.
    #[error("portmapper: cannot receive datagrams at {address}: {source}")]
    Udp {
        /// Where.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
}

struct PortmapService(Dispatcher<()>);

impl Service for PortmapService {
    type Visitor = ();

    fn visitor(&self, _: SocketAddr, _: &Arc<Line>) {}

    fn dispatcher(&self) -> &Dispatcher<()> {
        &self.0
    }
}

impl Portmapper {
    /// Answers at `listen`, which should be port 111 everywhere, with where `offered` is.
    ///
    /// # Errors
    /// [`PortmapError`], with what to do about it.
    pub fn start(listen: Vec<SocketAddr>, offered: &[Offered]) -> Result<Self, PortmapError> {
        let listeners =
            listen.into_iter().map(crate::listen::listen).collect::<Result<Vec<_>, _>>();
        let listeners = listeners.map_err(StartError::from)?;
        let addresses =
            listeners.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>();
        let addresses = addresses.map_err(StartError::from)?;
        let offered: Vec<_> = itself(&addresses).chain(offered.iter().copied()).collect();
        let dispatcher = || Dispatcher::new(vec![Arc::new(PortmapProgram(offered.clone())) as _]);
        let settings = Settings {
            desks: 1,
            threads_max: 1,
            connections_max: PORTMAP_CONNECTIONS_MAX,
            connections_per_address_max: PORTMAP_CONNECTIONS_MAX / 4,
            patience: Patience { idle_seconds: 60, drain_seconds: 1, ..Patience::default() },
            ..Settings::default()
        };
        let server = Server::start_with(PortmapService(dispatcher()), settings, listeners)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut datagrams = Vec::new();
        for &address in server.addresses() {
            let socket = udp(address).map_err(|source| PortmapError::Udp { address, source })?;
            let (dispatcher, stop) = (dispatcher(), Arc::clone(&stop));
            datagrams.push(std::thread::spawn(move || answer(&socket, &dispatcher, &stop)));
        }
        Ok(Self { server, stop, datagrams })
    }

    /// Where it answers.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.addresses()
    }

    /// Ends it.
    pub fn shutdown(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.server.shutdown();
        for thread in self.datagrams {
            let _ = thread.join();
        }
    }
}

/// The portmapper as one of the programs that are to be found: some clients ask for it first.
fn itself(addresses: &[SocketAddr]) -> impl Iterator<Item = Offered> {
    let versions = |address| VERSIONS.map(|version| Offered { program: PROGRAM, version, address });
    addresses.iter().flat_map(|&address| both_versions(address)).flat_map(versions)
}

/// A socket of the same families as the listener's.
fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    use socket2::{Domain, Protocol, Socket, Type};
    let kind = Type::DGRAM.cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_read_timeout(Some(Duration::from_millis(PORTMAP_STOP_MS)))?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// Answers datagrams, each one call, until told to stop.
fn answer(socket: &UdpSocket, dispatcher: &Dispatcher<()>, stop: &AtomicBool) {
    let mut buffer = [0; DATAGRAM_BYTES_MAX];
    let mut reply = Encoder::new();
    while !stop.load(Ordering::Relaxed) {
        let Ok((length, peer)) = socket.recv_from(&mut buffer) else { continue };
        reply.clear(DATAGRAM_BYTES_MAX);
        let answered = dispatcher.answer(&buffer[..length], peer.ip(), &(), &mut reply);
        // A datagram has no record mark.
        if let (Ok(Answered::Now), Some(datagram)) = (answered, reply.bytes().get(4..)) {
            let _ = socket.send_to(datagram, peer);
        }
    }
}
