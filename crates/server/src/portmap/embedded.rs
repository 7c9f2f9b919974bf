use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;

use comity_proto::portmap::{PORTMAP_VERSION, PROGRAM, RPCBIND_VERSION_3, RPCBIND_VERSION_4, TCP};
use comity_rpc::{Admission, Backchannel, Dispatcher, Gate};

use super::program::PortmapProgram;
use super::{Advertised, both_versions};
use crate::datagrams::Datagrams;
use crate::limits::PORTMAP_CONNECTIONS_MAX;
use crate::listen::listen;
use crate::server::{Server, StartError};
use crate::service::{Endpoints, Service};
use crate::settings::{Patience, Settings};

/// The embedded portmapper, over TCP and UDP. It lists the server's programs only and accepts no
/// registrations.
pub struct Portmapper<G: Gate<IpAddr> + 'static> {
    server: Server<PortmapService<G>>,
    datagrams: Vec<Datagrams>,
}

/// The versions that it supports, the newest first.
const VERSIONS: [u32; 3] = [RPCBIND_VERSION_4, RPCBIND_VERSION_3, PORTMAP_VERSION];

/// Why the portmapper does not start.
#[derive(Debug, thiserror::Error)]
pub enum PortmapError {
    /// The TCP port cannot be opened.
    #[error("portmapper: {0}")]
    Tcp(#[from] StartError),
    /// The UDP port cannot be opened.
    #[error("portmapper: cannot receive datagrams at {address}: {source}")]
    Udp {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}

struct PortmapService<G> {
    dispatcher: Dispatcher<IpAddr, G>,
    gate: G,
}

impl<G: Gate<IpAddr> + 'static> Service for PortmapService<G> {
    type Visitor = IpAddr;
    type Gate = G;

    fn lists(&self, peer: IpAddr) -> bool {
        self.gate.admits(&peer) == Admission::Admitted
    }

    fn visitor(&self, Endpoints { peer, .. }: Endpoints, _: &Arc<Backchannel>) -> IpAddr {
        peer.ip()
    }

    fn dispatcher(&self) -> &Dispatcher<IpAddr, G> {
        &self.dispatcher
    }
}

impl<G: Gate<IpAddr> + Clone + 'static> Portmapper<G> {
    /// Answers peers that `gate` admits at `places`, which should be port 111 everywhere, with
    /// where `offered` is.
    ///
    /// # Errors
    /// [`PortmapError`], with what to do about it.
    pub fn start(
        places: Vec<SocketAddr>,
        offered: &[Advertised],
        gate: &G,
    ) -> Result<Self, PortmapError> {
        let opened = places.into_iter().map(|address| listen(address, "leave out --portmap"));
        let listeners = opened.collect::<Result<Vec<_>, _>>();
        let listeners = listeners.map_err(StartError::from)?;
        let addresses =
            listeners.iter().map(TcpListener::local_addr).collect::<Result<Vec<_>, _>>();
        let addresses = addresses.map_err(StartError::from)?;
        let offered: Vec<_> = itself(&addresses).chain(offered.iter().copied()).collect();
        let program = || Arc::new(PortmapProgram(offered.clone()));
        let dispatcher = || Dispatcher::new(vec![program() as _], gate.clone());
        let service = PortmapService { dispatcher: dispatcher(), gate: gate.clone() };
        let settings = Settings {
            event_loops: 1,
            threads_max: 1,
            connections_max: PORTMAP_CONNECTIONS_MAX,
            connections_per_address_max: PORTMAP_CONNECTIONS_MAX / 4,
            patience: Patience { idle_seconds: 60, drain_seconds: 1, ..Patience::default() },
            ..Settings::default()
        };
        let server = Server::start_with(service, settings, listeners)?;
        let portmapper = Self { server, datagrams: Vec::new() };
        portmapper.with_datagrams(dispatcher)
    }

    /// Answers datagrams too, at the addresses of the server. If that fails it ends the server,
    /// whose threads would keep the addresses.
    fn with_datagrams(
        mut self,
        dispatcher: impl Fn() -> Dispatcher<IpAddr, G>,
    ) -> Result<Self, PortmapError> {
        for address in self.addresses().to_vec() {
            match Datagrams::start(address, dispatcher(), |peer| peer.ip()) {
                Ok(datagrams) => self.datagrams.push(datagrams),
                Err(source) => {
                    self.shutdown();
                    return Err(PortmapError::Udp { address, source });
                }
            }
        }
        Ok(self)
    }

    /// Returns the addresses at which it answers.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        self.server.addresses()
    }

    /// Stops it.
    pub fn shutdown(self) {
        self.server.shutdown();
        self.datagrams.into_iter().for_each(Datagrams::shutdown);
    }
}

/// Returns the portmapper's own entries: some clients ask for them first.
fn itself(addresses: &[SocketAddr]) -> impl Iterator<Item = Advertised> {
    let versions = |address| {
        VERSIONS.map(|version| Advertised { program: PROGRAM, version, protocol: TCP, address })
    };
    addresses.iter().flat_map(|&address| both_versions(address)).flat_map(versions)
}
