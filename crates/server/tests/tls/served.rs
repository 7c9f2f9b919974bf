//! Calls over TLS are answered as over a plain connection.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use comity_server::{Patience, Settings};
use comity_tls::{Acceptor, Certificate, Trust};

use crate::client::{Identity, call, config, handshake, next_reply};
use crate::service::{CHANNEL, server_key, settings, start};
use crate::toy::{ECHO, FILE, ZEROS, eventually, opaque, record};

const SUNRPC: &[u8] = b"sunrpc";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_client_is_known_by_the_key_that_it_proves_if_any() {
    let server = start(None, settings());
    let address = server.addresses()[0];
    let identity = Identity::until(2090);
    let key = Certificate::read(&identity.chain[0]).unwrap().key();
    let mut mutual = handshake(address, config(Some(&identity), &[])).unwrap();
    let channel = text(call(&mut mutual, 1, (CHANNEL, &[])).unwrap());
    assert_eq!(channel, format!("TLS, key {key}"));
    let mut anonymous = handshake(address, config(None, &[])).unwrap();
    assert_eq!(text(call(&mut anonymous, 1, (CHANNEL, &[])).unwrap()), "TLS");
    assert_eq!(server.stats().handshakes, [1, 1]);
    assert_eq!(server.stats().by_channel, [0, 1, 1]);
}

#[test]
fn the_alpn_protocol_is_sunrpc_if_the_client_offers_protocols() {
    let server = start(None, settings());
    let address = server.addresses()[0];
    let named = handshake(address, config(None, &[SUNRPC])).unwrap();
    assert_eq!(named.conn.alpn_protocol(), Some(SUNRPC));
    let unnamed = handshake(address, config(None, &[])).unwrap();
    assert_eq!(unnamed.conn.alpn_protocol(), None);
    assert!(handshake(address, config(None, &[b"h2"])).is_err());
}

#[test]
fn records_of_every_size_go_both_ways() {
    let server = start(None, settings());
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    for (xid, bytes) in [0, 1, 100, 16_383, 16_384, 16_385, 70_000, 1 << 20].into_iter().enumerate()
    {
        let sent: Vec<u8> = (0..bytes).map(|n: usize| (n % 251) as u8).collect();
        let came = call(&mut client, xid as u32, (ECHO, &opaque(&sent))).unwrap();
        assert!(came == opaque(&sent), "{bytes} bytes");
    }
}

#[test]
fn many_calls_at_once_are_answered_in_order() {
    let server = start(None, settings());
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    let calls: Vec<u8> =
        (0..500).flat_map(|xid| record(xid, ECHO, &opaque(&xid.to_be_bytes()))).collect();
    client.write_all(&calls).unwrap();
    for xid in 0..500_u32 {
        let reply = next_reply(&mut client).unwrap();
        assert_eq!(reply[..4], xid.to_be_bytes());
    }
}

#[test]
fn a_file_that_is_sent_by_reference_is_encrypted() {
    let content: Vec<u8> = (0..900_000_u32).map(|n| (n % 253) as u8).collect();
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&content).unwrap();
    let server = start(Some(file), settings());
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    let came = call(&mut client, 1, (FILE, &900_000_u32.to_be_bytes())).unwrap();
    assert!(came == content);
    // A file that is shorter than announced is filled with zeros.
    let came = call(&mut client, 2, (FILE, &900_400_u32.to_be_bytes())).unwrap();
    assert!(came.starts_with(&content) && came[900_000..] == [0; 400]);
}

#[test]
fn replies_are_kept_for_a_client_that_reads_late() {
    let server = start(None, settings());
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    let bytes = 900_000_u32;
    let calls: Vec<u8> = (0..30).flat_map(|xid| record(xid, ZEROS, &bytes.to_be_bytes())).collect();
    client.write_all(&calls).unwrap();
    eventually("replies wait", || server.stats().backlogs > 0);
    for xid in 0..30_u32 {
        let reply = next_reply(&mut client).unwrap();
        assert_eq!((&reply[..4], reply.len()), (&xid.to_be_bytes()[..], 24 + bytes as usize));
    }
}

#[test]
fn both_sides_may_change_their_keys() {
    let server = start(None, settings());
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    for xid in 0..50 {
        client.conn.refresh_traffic_keys().unwrap();
        let sent = opaque(&[7; 40_000]);
        assert!(call(&mut client, xid, (ECHO, &sent)).unwrap() == sent);
    }
}

#[test]
fn a_renewed_key_is_used_for_new_connections_and_old_ones_continue() {
    let settings = settings();
    let acceptor: Arc<Acceptor> = Arc::clone(settings.tls.as_ref().unwrap());
    let server = start(None, settings);
    let address = server.addresses()[0];
    let shown = |client: &crate::client::Encrypted| {
        let chain = client.conn.peer_certificates().unwrap();
        Certificate::read(&chain[0]).unwrap().key()
    };
    let mut old = handshake(address, config(None, &[])).unwrap();
    let renewed = server_key();
    acceptor.renew(&renewed, Trust::default()).unwrap();
    let new = handshake(address, config(None, &[])).unwrap();
    assert_eq!(shown(&new), *renewed.public());
    assert_ne!(shown(&old), *renewed.public());
    assert_eq!(text(call(&mut old, 1, (CHANNEL, &[])).unwrap()), "TLS");
}

#[test]
fn a_peer_that_is_listed_by_its_key_is_served_without_pauses() {
    let server = start(None, settings());
    let rules = &server.service().rules;
    rules.lists_nobody.store(true, Ordering::SeqCst);
    rules.demands_tls.store(true, Ordering::SeqCst);
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    let begun = std::time::Instant::now();
    for xid in 0..20 {
        call(&mut client, xid, (CHANNEL, &[])).unwrap();
    }
    // An unlisted peer would be answered one call a second.
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
}

/// The second call is decrypted together with the end of the first one and waits. The third one
/// arrives meanwhile, and the kernel reports it only once.
#[test]
fn a_call_that_arrives_while_decrypted_ones_wait_is_answered_after_them() {
    let patience = Patience { record_seconds: 60, ..settings().patience };
    let server = start(None, Settings { patience, ..settings() });
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    call(&mut client, 0, (CHANNEL, &[])).unwrap();
    let undecided = &server.service().rules.is_undecided;
    undecided.store(true, Ordering::SeqCst);
    let long = opaque(&vec![7; 300_000]);
    let before = server.stats().records;
    client.write_all(&[record(1, ECHO, &long), record(2, ZEROS, &[0; 4])].concat()).unwrap();
    eventually("the first call waits", || server.stats().records > before);
    client.write_all(&record(3, ZEROS, &[0; 4])).unwrap();
    // Each turn of the connection counts the call that waits. Of two further turns, only one can be
    // that of a clock tick which came before the third call.
    let before = server.stats().records;
    eventually("the third call has been reported", || server.stats().records >= before + 2);
    undecided.store(false, Ordering::SeqCst);
    client.sock.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    for xid in 1..=3_u32 {
        let reply = next_reply(&mut client).unwrap_or_else(|error| panic!("{xid}: {error}"));
        assert_eq!(reply[..4], xid.to_be_bytes());
    }
}
