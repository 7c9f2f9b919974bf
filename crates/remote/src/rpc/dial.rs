use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use socket2::{Domain, Socket, Type};

/// Longest a connection may take to be made, in seconds.
const CONNECT_SECONDS_MAX: u64 = 10;

/// Reserved ports that are tried: those that Linux's own client takes.
const RESERVED: std::ops::RangeInclusive<u16> = 665..=1023;

/// Connects to a server; as root from a reserved port, if one is free.
pub fn dial(address: SocketAddr) -> Result<TcpStream> {
    // Loopback needs no such port, and thousands of connections a test would use them up.
    let reserved = rustix::process::geteuid().is_root() && !address.ip().is_loopback();
    let most = Duration::from_secs(CONNECT_SECONDS_MAX);
    let stream = match reserved.then(|| from_reserved(address, most)) {
        Some(Ok(stream)) => Ok(stream),
        _ => TcpStream::connect_timeout(&address, most),
    };
    stream.with_context(|| format!("connect {address}: nobody answers there"))
}

fn from_reserved(address: SocketAddr, most: Duration) -> io::Result<TcpStream> {
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
        match bound.and_then(|()| socket.connect_timeout(&address.into(), most)) {
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
