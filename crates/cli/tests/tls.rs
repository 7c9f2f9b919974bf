//! RPC-with-TLS from the command line to the file.

mod common;

use std::fs;
use std::net::TcpStream;

use common::line::{Identity, Line};
use common::raw::Raw;
use common::{Place, Running};

/// A connection with TLS to the server at this place, which made its key itself.
fn secure(place: &Place, server: &Running, identity: Option<&Identity>) -> Line {
    let plain = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    Line::secure(plain, &place.state().join("tls.crt"), identity)
}

#[test]
fn a_client_mounts_and_reads_over_tls() {
    let place = Place::new();
    let content: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
    fs::write(place.data().join("file"), &content).unwrap();
    let server = Running::start(&mut place.serve_data());
    for identity in [None, Some(Identity::self_signed())] {
        let mut client = Raw::on(secure(&place, &server, identity.as_ref()), 0);
        let root = client.mount(&place.data()).unwrap();
        let file = client.lookup(&root, b"file").unwrap();
        assert!(client.read(&file).unwrap() == content);
    }
}
