//! Attacks on the channel, and how each of them ends.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use comity_server::{Patience, Server, Settings};
use rustls::ClientConnection;
use rustls::pki_types::{CertificateDer, ServerName};

use crate::client::{Identity, call, config, connect, handshake, next_reply, probe, probed};
use crate::service::{CHANNEL, Telling, settings, start};
use crate::toy::{NULL, eventually, record};

/// The number of connections that ended for this reason.
fn ended(server: &Server<Telling>, reason: &str) -> u64 {
    server.stats().ended().find(|(name, _)| *name == reason).unwrap().1
}

/// Reads until the server closes the connection; returns the bytes.
fn until_end(mut stream: impl Read) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset ends the connection, too.
    let _ = stream.read_to_end(&mut bytes);
    bytes
}

fn refusal(stream: &mut TcpStream) -> [u32; 5] {
    let reply = next_reply(stream).unwrap();
    std::array::from_fn(|at| u32::from_be_bytes(reply[4 * at..4 * at + 4].try_into().unwrap()))
}

#[test]
fn a_client_without_tls_is_refused_if_tls_is_demanded() {
    let server = start(None, settings());
    server.service().rules.demands_tls.store(true, Ordering::SeqCst);
    let mut stripped = connect(server.addresses()[0]);
    stripped.write_all(&record(1, CHANNEL, &[])).unwrap();
    assert_eq!(refusal(&mut stripped), [1, 1, 1, 1, 5]);
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    assert_eq!(call(&mut client, 1, (CHANNEL, &[])).unwrap(), b"TLS");
}

#[test]
fn early_plain_bytes_behind_the_probe_end_the_connection() {
    let server = start(None, settings());
    for behind in [record(8, CHANNEL, &[]), vec![0x16], vec![0x80, 0, 0]] {
        let before = ended(&server, "early_bytes");
        let mut stream = connect(server.addresses()[0]);
        stream.write_all(&[probe(7, NULL), behind].concat()).unwrap();
        let answered = until_end(stream);
        assert!(!answered.windows(5).any(|bytes| bytes == b"plain"), "nothing is done in clear");
        assert_eq!(ended(&server, "early_bytes"), before + 1);
    }
}

#[test]
fn plain_bytes_after_the_answer_are_no_handshake() {
    let server = start(None, settings());
    let mut stream = probed(server.addresses()[0]);
    stream.write_all(&record(8, CHANNEL, &[])).unwrap();
    assert!(!until_end(stream).windows(5).any(|bytes| bytes == b"plain"));
    assert_eq!(ended(&server, "handshake"), 1);
}

#[test]
fn a_second_starttls_is_refused() {
    let server = start(None, settings());
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    client.write_all(&probe(9, NULL)).unwrap();
    let reply = next_reply(&mut client).unwrap();
    assert_eq!(reply[..4], 9_u32.to_be_bytes());
    assert_eq!(reply[4..20], [[0, 0, 0, 1]; 4].concat(), "AUTH_ERROR, AUTH_BADCRED");
    assert_eq!(call(&mut client, 1, (CHANNEL, &[])).unwrap(), b"TLS");
}

#[test]
fn the_flavor_of_the_probe_is_refused_for_other_procedures() {
    let server = start(None, settings());
    let mut stream = connect(server.addresses()[0]);
    stream.write_all(&probe(9, CHANNEL)).unwrap();
    // This program checks no credential; the point is that no handshake follows.
    assert!(next_reply(&mut stream).is_ok());
    assert_eq!(call(&mut stream, 1, (CHANNEL, &[])).unwrap(), b"plain");
}

#[test]
fn a_probe_without_tls_is_refused_and_calls_go_on() {
    let server = start(None, crate::toy::settings());
    let mut stream = connect(server.addresses()[0]);
    stream.write_all(&probe(9, NULL)).unwrap();
    // The gate of this test would begin TLS, but a server without a key closes the connection.
    assert!(!until_end(stream).windows(5).any(|bytes| bytes == b"plain"));
}

#[test]
fn a_flood_of_key_updates_ends_the_connection() {
    let server = start(None, settings());
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    for _ in 0..100 {
        client.conn.refresh_traffic_keys().unwrap();
        if client.conn.write_tls(&mut client.sock).is_err() {
            break;
        }
    }
    eventually("the flood ends the connection", || ended(&server, "tls") == 1);
}

#[test]
fn renegotiation_does_not_exist() {
    // In TLS 1.2 a hello would begin a renegotiation. In clear it is no record of this connection.
    let server = start(None, settings());
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    client.sock.write_all(&[0x16, 3, 3, 0, 5, 1, 0, 0, 1, 0]).unwrap();
    let _ = until_end(&client.sock);
    eventually("it is counted", || ended(&server, "tls") == 1);
}

#[test]
fn a_changed_byte_ends_the_connection() {
    let server = start(None, settings());
    let mut client = handshake(server.addresses()[0], config(None, &[])).unwrap();
    client.conn.writer().write_all(&record(1, CHANNEL, &[])).unwrap();
    let mut sealed = Vec::new();
    client.conn.write_tls(&mut sealed).unwrap();
    *sealed.last_mut().unwrap() ^= 1;
    client.sock.write_all(&sealed).unwrap();
    let _ = until_end(&client.sock);
    eventually("it is counted", || ended(&server, "tls") == 1);
}

#[test]
fn no_session_is_resumed_under_another_key() {
    let server = start(None, settings());
    let address = server.addresses()[0];
    let (first, second) = (Identity::until(2090), Identity::until(2090));
    // Both identities share one store of sessions.
    let mut config_of = [config(Some(&first), &[]), config(Some(&second), &[])];
    let [one, two] = &mut config_of;
    two.resumption = one.resumption.clone();
    let channels = config_of.map(|config| {
        let mut client = handshake(address, config).unwrap();
        let channel = call(&mut client, 1, (CHANNEL, &[])).unwrap();
        assert_eq!(client.conn.handshake_kind(), Some(rustls::HandshakeKind::Full));
        assert_eq!(client.conn.tls13_tickets_received(), 0);
        channel
    });
    assert_ne!(channels[0], channels[1]);
}

#[test]
fn an_expired_certificate_is_refused() {
    let server = start(None, settings());
    let expired = Identity::until(2010);
    refuse(&server, config(Some(&expired), &[]), "CertificateExpired");
}

#[test]
fn a_connection_ends_with_the_certificate_of_its_peer() {
    let server = start(None, settings());
    let identity = Identity::for_a_while(Duration::from_secs(3));
    let mut client = handshake(server.addresses()[0], config(Some(&identity), &[])).unwrap();
    assert!(call(&mut client, 1, (CHANNEL, &[])).is_ok());
    eventually("it has expired", || ended(&server, "expired") == 1);
}

#[test]
fn a_key_that_is_not_that_of_the_certificate_is_refused() {
    let server = start(None, settings());
    let (own, other) = (Identity::until(2090), Identity::until(2090));
    let stolen = Identity { chain: other.chain, key: own.key };
    let key = rustls::crypto::aws_lc_rs::sign::any_supported_type(&stolen.private()).unwrap();
    let certified = rustls::sign::CertifiedKey::new(stolen.chain, key);
    let mut config = config(None, &[]);
    let resolver = rustls::sign::SingleCertAndKey::from(certified);
    config.client_auth_cert_resolver = Arc::new(resolver);
    refuse(&server, config, "DecryptError");
}

#[test]
fn an_oversized_certificate_chain_is_refused() {
    let server = start(None, settings());
    let mut identity = Identity::until(2090);
    let long = CertificateDer::from(vec![0x30; 12 << 10]);
    identity.chain.extend([long.clone(), long.clone(), long]);
    refuse(&server, config(Some(&identity), &[]), "");
}

/// To the client the handshake seems finished; an alert or the end of the connection tells it of
/// the refusal.
fn refuse(server: &Server<Telling>, config: rustls::ClientConfig, alert: &str) {
    let refused = handshake(server.addresses()[0], config)
        .and_then(|mut client| call(&mut client, 1, (CHANNEL, &[])));
    let error = refused.unwrap_err().to_string();
    assert!(error.contains(alert), "{error}");
    eventually("it is counted", || ended(server, "handshake") == 1);
}

/// The first bytes that a client sends after STARTTLS.
fn hello() -> Vec<u8> {
    let name = ServerName::try_from("server.example").unwrap();
    let client = ClientConnection::new(Arc::new(config(None, &[])), name);
    let mut hello = Vec::new();
    client.unwrap().write_tls(&mut hello).unwrap();
    hello
}

#[test]
fn a_handshake_that_breaks_off_anywhere_releases_its_memory() {
    let server = start(None, settings());
    let hello = hello();
    for length in (0..hello.len()).step_by(hello.len() / 16) {
        let mut stream = probed(server.addresses()[0]);
        stream.write_all(&hello[..length]).unwrap();
    }
    eventually("all of them are gone", || {
        let numbers = server.stats();
        numbers.connections == 0 && numbers.buffered_bytes == 0
    });
    assert_eq!(ended(&server, "closed"), server.stats().accepted);
}

#[test]
fn a_hello_with_any_byte_of_its_frame_changed_is_refused() {
    let server = start(None, settings());
    let hello = hello();
    // Offsets of the type, the version and the length of the record, and of the type and the length
    // of the hello.
    let places = [0, 1, 3, 5, 6];
    for place in places {
        let mut changed = hello.clone();
        changed[place] ^= 0xff;
        let mut stream = probed(server.addresses()[0]);
        stream.write_all(&changed).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let answered = until_end(stream);
        assert!(!answered.starts_with(&[0x16]), "byte {place}: no hello of the server");
    }
    eventually("all of them end", || server.stats().connections == 0);
    let refused = ["handshake", "closed"].map(|reason| ended(&server, reason));
    assert_eq!(refused.iter().sum::<u64>(), places.len() as u64, "{refused:?}");
    assert!(refused[0] > 0);
}

#[test]
fn a_hello_is_understood_byte_by_byte() {
    let server = start(None, settings());
    let name = ServerName::try_from("server.example").unwrap();
    let mut client = ClientConnection::new(Arc::new(config(None, &[])), name).unwrap();
    let mut stream = probed(server.addresses()[0]);
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    for byte in hello {
        stream.write_all(&[byte]).unwrap();
    }
    let mut encrypted = rustls::StreamOwned::new(client, stream);
    assert_eq!(call(&mut encrypted, 1, (CHANNEL, &[])).unwrap(), b"TLS");
}

/// A server that waits at most one second for a handshake.
fn impatient() -> Server<Telling> {
    let settings = settings();
    let patience = Patience { handshake_seconds: 1, ..settings.patience };
    start(None, Settings { patience, ..settings })
}

#[test]
fn a_stalled_handshake_ends_and_delays_nobody() {
    let server = impatient();
    let address = server.addresses()[0];
    let mut stalled: Vec<TcpStream> = (0..50).map(|_| probed(address)).collect();
    // Every other one sends the beginning of a record.
    for stream in stalled.iter_mut().step_by(2) {
        stream.write_all(&[0x16, 3, 1, 2, 0]).unwrap();
    }
    let begun = Instant::now();
    let mut client = handshake(address, config(None, &[])).unwrap();
    assert_eq!(call(&mut client, 1, (CHANNEL, &[])).unwrap(), b"TLS");
    assert!(begun.elapsed() < Duration::from_secs(10));
    eventually("all of them end", || ended(&server, "handshake_slow") == 50);
    drop(stalled);
}
