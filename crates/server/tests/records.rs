//! Malformed records, field by field: each gets the reply of RFC 5531 or ends its connection, and
//! the connection of another client is not affected.
#![allow(clippy::unwrap_used)]

mod toy;

use std::io::{ErrorKind, Read};
use std::sync::Arc;
use std::time::Duration;

use comity_server::{Server, limits};
use toy::{Client, ToyService, eventually, opaque, settings, start};

const LAST_FRAGMENT: u32 = 1 << 31;
const PATIENCE: Duration = Duration::from_secs(5);

/// The header of a NULL call without a credential, word by word (RFC 5531, 9).
const CALL: [u32; 10] = [7, 0, 2, toy::PROGRAM, 1, toy::NULL, 0, 0, 0, 0];

/// The indexes of words in the header of a call.
mod at {
    pub(crate) const KIND: usize = 1;
    pub(crate) const RPC_VERSION: usize = 2;
    pub(crate) const PROGRAM: usize = 3;
    pub(crate) const VERSION: usize = 4;
    pub(crate) const PROCEDURE: usize = 5;
    pub(crate) const CREDENTIAL_BYTES: usize = 7;
    pub(crate) const VERIFIER_BYTES: usize = 9;
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// A record of one fragment.
fn record(body: &[u8]) -> Vec<u8> {
    [&(LAST_FRAGMENT | body.len() as u32).to_be_bytes(), body].concat()
}

/// The call with one word changed.
fn changed(place: usize, word: u32) -> Vec<u8> {
    let mut call = CALL;
    call[place] = word;
    record(&bytes(&call))
}

/// The words of the next reply, without the record mark.
fn reply(client: &mut Client) -> Vec<u32> {
    let mut mark = [0; 4];
    client.0.read_exact(&mut mark).unwrap();
    let length = u32::from_be_bytes(mark) & !LAST_FRAGMENT;
    let mut body = vec![0; length as usize];
    client.0.read_exact(&mut body).unwrap();
    body.chunks_exact(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect()
}

/// Sends a record and then a valid call; returns the reply to the record.
fn answer(server: &Server<ToyService>, sent: &[u8]) -> Vec<u32> {
    let mut client = Client::new(server);
    client.send(sent);
    let words = reply(&mut client);
    client.send(&record(&bytes(&CALL)));
    assert_eq!(reply(&mut client), [7, 1, 0, 0, 0, 0], "the connection goes on");
    words
}

/// Returns whether the server closes the connection of a client that sends these bytes.
fn ends(server: &Server<ToyService>, sent: &[u8]) -> bool {
    let mut client = Client::new(server);
    client.send(sent);
    client.is_ended_within(PATIENCE)
}

#[test]
fn a_call_of_another_rpc_version_gets_the_supported_versions() {
    let server = start(&Arc::default(), settings());
    for version in [0, 1, 3, u32::MAX] {
        let words = answer(&server, &changed(at::RPC_VERSION, version));
        assert_eq!(words, [7, 1, 1, 0, 2, 2], "RPC_MISMATCH, lowest and highest version");
    }
}

#[test]
fn an_unknown_program_version_or_procedure_has_its_own_error() {
    let server = start(&Arc::default(), settings());
    let accepted = |status: &[u32]| [&[7, 1, 0, 0, 0], status].concat();
    for program in [0, toy::PROGRAM + 1, u32::MAX] {
        assert_eq!(answer(&server, &changed(at::PROGRAM, program)), accepted(&[1]));
    }
    for version in [0, 2, u32::MAX] {
        assert_eq!(answer(&server, &changed(at::VERSION, version)), accepted(&[2, 1, 1]));
    }
    for procedure in [99, u32::MAX] {
        assert_eq!(answer(&server, &changed(at::PROCEDURE, procedure)), accepted(&[3]));
    }
}

#[test]
fn a_credential_or_verifier_that_is_too_long_or_breaks_off_is_garbage() {
    let server = start(&Arc::default(), settings());
    for place in [at::CREDENTIAL_BYTES, at::VERIFIER_BYTES] {
        for length in [4, 401, 1 << 20, u32::MAX] {
            let words = answer(&server, &changed(place, length));
            assert_eq!(words, [7, 1, 0, 0, 0, 4], "word {place}, {length} bytes");
        }
    }
}

#[test]
fn a_header_that_breaks_off_is_garbage() {
    let server = start(&Arc::default(), settings());
    let call = bytes(&CALL);
    for length in 12..call.len() {
        let words = answer(&server, &record(&call[..length]));
        assert_eq!(words, [7, 1, 0, 0, 0, 4], "{length} bytes");
    }
}

#[test]
fn a_record_that_is_no_call_ends_its_connection() {
    let server = start(&Arc::default(), settings());
    let mut other = Client::new(&server);
    other.call(1, toy::NULL, &[]);
    for kind in [1, 2, u32::MAX] {
        assert!(ends(&server, &changed(at::KIND, kind)), "kind {kind}");
    }
    let call = bytes(&CALL);
    for length in 0..8 {
        assert!(ends(&server, &record(&call[..length])), "{length} bytes");
    }
    other.call(2, toy::NULL, &[]);
    drop(other);
    eventually("no connection is left", || server.stats().connections == 0);
}

#[test]
fn arguments_that_break_off_or_lie_about_their_length_are_garbage() {
    let server = start(&Arc::default(), settings());
    let mut echo = CALL;
    echo[at::PROCEDURE] = toy::ECHO;
    let header = bytes(&echo);
    let whole = opaque(b"seven b");
    for length in 0..whole.len() {
        let words = answer(&server, &record(&[&header, &whole[..length]].concat()));
        assert_eq!(words, [7, 1, 0, 0, 0, 4], "{length} bytes of arguments");
    }
    for lie in [8_u32, 1 << 21, u32::MAX] {
        let arguments = [&lie.to_be_bytes()[..], b"seven b\0"].concat();
        let words = answer(&server, &record(&[&header[..], &arguments].concat()));
        let garbage = words == [7, 1, 0, 0, 0, 4];
        assert!(garbage || lie == 8, "{lie} bytes announced: {words:?}");
    }
}

#[test]
fn the_longest_record_is_answered_and_a_longer_one_ends_its_connection() {
    let server = start(&Arc::default(), settings());
    let mut echo = CALL;
    echo[at::PROCEDURE] = toy::ECHO;
    let room = limits::RECORD_BYTES_MAX - 4 * CALL.len() - 4;
    let longest = record(&[bytes(&echo), opaque(&vec![5; room])].concat());
    let mut client = Client::new(&server);
    client.send(&longest);
    let answered = client.reply();
    assert_eq!((answered.xid, answered.status, answered.results.len()), (7, 0, room + 4));

    let mut client = Client::new(&server);
    client.send(&(LAST_FRAGMENT | (limits::RECORD_BYTES_MAX as u32 + 1)).to_be_bytes());
    client.send(&bytes(&CALL));
    assert!(client.is_ended_within(PATIENCE));
    eventually("no memory is held", || server.stats().buffered_bytes == 0);
}

#[test]
fn fragments_together_may_be_no_longer_than_a_record() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    let half = limits::RECORD_BYTES_MAX / 2 + 1;
    let mut fragment = (half as u32).to_be_bytes().to_vec();
    fragment.extend(bytes(&CALL));
    fragment.resize(4 + half, 0);
    client.send(&fragment);
    client.send(&(LAST_FRAGMENT | half as u32).to_be_bytes());
    assert!(client.is_ended_within(PATIENCE));
}

#[test]
fn empty_fragments_without_an_end_are_not_read_for_ever() {
    let server = start(&Arc::default(), settings());
    let mut client = Client::new(&server);
    let empty = vec![0; 4 * 4096];
    // The server may close the connection before all bytes are sent.
    let sent = std::io::Write::write_all(&mut client.0, &empty);
    let reset = |kind| matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
    assert!(sent.is_ok() || sent.is_err_and(|error| reset(error.kind())));
    assert!(client.is_ended_within(PATIENCE));
    eventually("no memory is held", || server.stats().buffered_bytes == 0);
}

#[test]
fn an_empty_last_fragment_completes_the_record_before_it() {
    let server = start(&Arc::default(), settings());
    let call = bytes(&CALL);
    let first = [&(call.len() as u32).to_be_bytes()[..], &call].concat();
    let sent = [&first[..], &LAST_FRAGMENT.to_be_bytes()].concat();
    assert_eq!(answer(&server, &sent), [7, 1, 0, 0, 0, 0]);
}

/// The bytes as fragments of at most `bytes` bytes each; the last one ends the record.
fn fragments(body: &[u8], bytes: usize) -> Vec<u8> {
    let count = body.len().div_ceil(bytes);
    let marked = |(at, piece): (usize, &[u8])| {
        let last = if at + 1 == count { LAST_FRAGMENT } else { 0 };
        [&(last | piece.len() as u32).to_be_bytes(), piece].concat()
    };
    body.chunks(bytes).enumerate().flat_map(marked).collect()
}

#[test]
fn a_call_is_joined_from_fragments_of_any_length() {
    let server = start(&Arc::default(), settings());
    let call = bytes(&CALL);
    for length in 1..=call.len() {
        let sent = fragments(&call, length);
        assert_eq!(answer(&server, &sent), [7, 1, 0, 0, 0, 0], "{length} bytes each");
    }
    let many: Vec<u8> = (1..=call.len()).flat_map(|length| fragments(&call, length)).collect();
    let mut client = Client::new(&server);
    client.send(&many);
    for _ in 0..call.len() {
        assert_eq!(reply(&mut client), [7, 1, 0, 0, 0, 0], "one record after the other");
    }
}

#[test]
fn a_record_of_more_fragments_than_allowed_ends_its_connection() {
    let server = start(&Arc::default(), settings());
    let mut echo = CALL;
    echo[at::PROCEDURE] = toy::ECHO;
    let max = comity_rpc::limits::RECORD_FRAGMENTS_MAX as usize;
    let body = |room: usize| [bytes(&echo), opaque(&vec![5; room])].concat();
    let most = body(2 * max - 4 * CALL.len() - 4);
    assert_eq!(most.len().div_ceil(2), max);
    let mut client = Client::new(&server);
    client.send(&fragments(&most, 2));
    assert_eq!(client.reply().status, 0);
    assert!(ends(&server, &fragments(&body(2 * max - 4 * CALL.len()), 2)));
    eventually("no memory is held", || server.stats().buffered_bytes == 0);
}
