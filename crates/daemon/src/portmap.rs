//! Portmapping: answers for clients that ask for the server's ports.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use comity_export::Exports;
use comity_proto::portmap::{TCP, UDP};
use comity_proto::{nlm, nsm};
use comity_server::StartError;
use comity_server::portmap::{
    Advertised, PortmapError, Portmapper, RegisterError, Registration, both_versions,
};

use crate::options::Portmap;

/// The port of portmappers (RFC 1833, 3).
const PORT: u16 = 111;

/// NFS, MOUNT and NLM, by program number and version.
const PROGRAMS: [(u32, u32, u32); 3] =
    [(100_003, 3, TCP), (100_005, 3, TCP), (nlm::PROGRAM, nlm::VERSION, TCP)];

/// NSM, and NLM over UDP. If the machine has its own, these are not replaced.
const MONITOR: [(u32, u32, u32); 3] = [
    (nsm::PROGRAM, nsm::VERSION, TCP),
    (nsm::PROGRAM, nsm::VERSION, UDP),
    (nlm::PROGRAM, nlm::VERSION, UDP),
];

/// The portmapper that answers clients.
pub(crate) enum PortmapService {
    /// The server is registered with the machine's portmapper.
    Registered(Registration),
    /// A portmapper in this server.
    Embedded(Portmapper<Arc<Exports>>),
    /// There is none; clients must name the port.
    None,
}

impl PortmapService {
    /// Makes a server at these addresses known in the chosen way; an embedded portmapper answers
    /// only hosts to which `exports` are offered.
    ///
    /// # Errors
    /// An embedded portmapper was chosen and cannot start. A missing or refusing portmapper of the
    /// machine is no error, because clients can name the port.
    pub(crate) fn open(
        wish: Portmap,
        addresses: &[SocketAddr],
        exports: &Arc<Exports>,
    ) -> Result<Self> {
        Ok(match wish {
            Portmap::None => Self::None,
            Portmap::Embedded => {
                let ask_at = addresses.iter().map(|address| SocketAddr::new(address.ip(), PORT));
                let started = Portmapper::start(
                    ask_at.collect(),
                    &[offered(addresses, &PROGRAMS), offered(addresses, &MONITOR)].concat(),
                    exports,
                );
                Self::Embedded(started.map_err(explained)?)
            }
            Portmap::Register => match Registration::new(
                &offered(addresses, &PROGRAMS),
                &offered(addresses, &MONITOR),
            ) {
                Ok(registration) => Self::Registered(registration),
                Err(RegisterError::Absent) => Self::None,
                Err(error) => {
                    tracing::warn!(%error, "clients have to name the port");
                    Self::None
                }
            },
        })
    }

    /// Returns in a word how clients find the port.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Registered(_) => "registered",
            Self::Embedded(_) => "embedded",
            Self::None => "none",
        }
    }

    /// Removes the registration, or stops the portmapper.
    pub(crate) fn close(self) {
        match self {
            Self::Registered(registration) => {
                if let Err(error) = registration.withdraw() {
                    tracing::warn!(%error, "the server is still registered with the portmapper");
                }
            }
            Self::Embedded(portmapper) => portmapper.shutdown(),
            Self::None => {}
        }
    }
}

/// Explains what to do about a portmapper that cannot start: unlike other ports, 111 cannot be
/// changed.
fn explained(error: PortmapError) -> anyhow::Error {
    let PortmapError::Tcp(StartError::Listen(listen)) = &error else { return error.into() };
    let address = listen.address;
    match listen.source.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "a portmapper listens at {address} already; leave --portmap out: it is told about this \
             server then"
        ),
        ErrorKind::PermissionDenied => anyhow!(
            "a portmapper at {address} needs root; leave --portmap out: clients can name the port"
        ),
        _ => error.into(),
    }
}

fn offered(addresses: &[SocketAddr], programs: &[(u32, u32, u32)]) -> Vec<Advertised> {
    let places = addresses.iter().flat_map(|&address| both_versions(address));
    let at = |address| {
        let offer = move |&(program, version, protocol): &_| Advertised {
            program,
            version,
            protocol,
            address,
        };
        programs.iter().map(offer)
    };
    places.flat_map(at).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_programs_are_offered_over_both_versions_of_ip() {
        let offered = offered(&["[::]:2049".parse().unwrap()], &PROGRAMS);
        let places: Vec<_> = offered.iter().map(|o| (o.program, o.address.to_string())).collect();
        let expected = [
            (100_003, "[::]:2049"),
            (100_005, "[::]:2049"),
            (100_021, "[::]:2049"),
            (100_003, "0.0.0.0:2049"),
            (100_005, "0.0.0.0:2049"),
            (100_021, "0.0.0.0:2049"),
        ];
        assert_eq!(places, expected.map(|(program, place)| (program, place.to_owned())));
    }
}
