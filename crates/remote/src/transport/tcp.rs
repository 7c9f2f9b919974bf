use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use super::{Duplex, Transport};

/// Longest time to establish a connection.
const CONNECT_MAX: Duration = Duration::from_secs(10);

/// Timeout of one write, after which its caller can check for an interrupt.
pub(super) const WRITE_PAUSE: Duration = Duration::from_millis(200);

/// Reserved ports to try: those that Linux's client uses.
const RESERVED: std::ops::RangeInclusive<u16> = 665..=1023;

/// Plain TCP to a host and port, by name or address. The name is looked up for each connection.
#[derive(Debug, Clone)]
pub struct Tcp {
    host: String,
    port: u16,
}

impl Tcp {
    /// Makes a transport to this host and port.
    #[must_use]
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// Connects to the first address of the host that answers.
    pub(super) fn socket(&self) -> io::Result<TcpStream> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in (self.host.as_str(), self.port).to_socket_addrs()? {
            match dial(address) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl From<SocketAddr> for Tcp {
    fn from(address: SocketAddr) -> Self {
        Self::new(address.ip().to_string(), address.port())
    }
}

impl Transport for Tcp {
    fn connect(&self) -> io::Result<Duplex> {
        let stream = self.socket()?;
        stream.set_write_timeout(Some(WRITE_PAUSE))?;
        let (reader, close) = (stream.try_clone()?, closing(&stream)?);
        Ok(Duplex { reader: Box::new(reader), writer: Box::new(stream), close })
    }

    fn peer(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    fn to_port(&self, port: u16) -> Option<Box<dyn Transport>> {
        Some(Box::new(Self::new(self.host.clone(), port)))
    }
}

/// Returns a closure that shuts the connection down, so that threads blocked in it return.
pub(super) fn closing(stream: &TcpStream) -> io::Result<Box<dyn Fn() + Send + Sync>> {
    let stream = stream.try_clone()?;
    // An error means that the connection has already ended.
    Ok(Box::new(move || drop(stream.shutdown(Shutdown::Both))))
}

/// Connects to a server; as root from a reserved port, if one is free.
pub(crate) fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    // On loopback a reserved port is not needed, and tests with thousands of connections would use
    // them all.
    let reserved = rustix::process::geteuid().is_root() && !address.ip().is_loopback();
    match reserved.then(|| from_reserved(address)) {
        Some(Ok(stream)) => Ok(stream),
        _ => TcpStream::connect_timeout(&address, CONNECT_MAX),
    }
}

fn from_reserved(address: SocketAddr) -> io::Result<TcpStream> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let own = match address.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let count = RESERVED.len() as u16;
    let mut last = io::ErrorKind::AddrInUse.into();
    for _ in 0..count {
        let port = RESERVED.start() + NEXT.fetch_add(1, Ordering::Relaxed) % count;
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
        let bound = socket.bind(&SocketAddr::new(own, port).into());
        match bound.and_then(|()| socket.connect_timeout(&address.into(), CONNECT_MAX)) {
            Ok(()) => return Ok(socket.into()),
            Err(error) if is_taken(&error) => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::AddrNotAvailable)
}
