//! Memory of an idle TLS connection, measured in a process of its own.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

#[path = "tls/client.rs"]
#[allow(dead_code, reason = "it serves other tests, too")]
mod client;
#[path = "tls/service.rs"]
#[allow(dead_code, reason = "it serves other tests, too")]
mod service;
mod toy;

use std::net::TcpStream;

use crate::client::{Identity, call, config, handshake};
use crate::service::{CHANNEL, settings, start};

/// The resident bytes of the process. They include those of the cryptographic library, which an
/// allocator of Rust does not count.
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().trim().parse::<usize>().unwrap() << 10
}

/// Connections that made one call and are idle now.
fn connect(address: std::net::SocketAddr, count: usize) -> Vec<TcpStream> {
    let identity = Identity::until(2090);
    let config = config(Some(&identity), &[]);
    let idle = |_| {
        let mut client = handshake(address, config.clone()).unwrap();
        call(&mut client, 1, (CHANNEL, &[])).unwrap();
        client.sock
    };
    (0..count).map(idle).collect()
}

#[test]
fn an_idle_connection_takes_less_than_24_kibibytes() {
    const COUNT: usize = 400;
    let server = start(None, settings());
    let address = server.addresses()[0];
    // Some memory is allocated only once, and the allocator keeps some of the first handshakes.
    let first = connect(address, COUNT / 4);
    let before = resident_bytes();
    let idle = connect(address, COUNT);
    let each = resident_bytes().saturating_sub(before) / COUNT;
    println!("{each} bytes for an idle connection");
    assert!(each < 24 << 10, "{each} bytes for an idle connection");
    drop((first, idle));
}
