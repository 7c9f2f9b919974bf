//! The server's reply to each kind of call (RFC 5531, 9).
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use comity_rpc::{
    Admission, Answered, AuthStat, Call, CallHeader, Deferred, Dispatcher, Done, Flavor, Gate,
    OpaqueAuth, OpenGate, Outcome, Program, Repeat, ReplyVerifier,
};
use comity_xdr::{Decoder, Encoder, Opaque};

const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Procedure 0 counts and is harmless, 1 counts and is remembered, 2 is deferred, 3 is denied, 4
/// needs a number, and 5 is deferred and remembered. There are no others.
#[derive(Default)]
struct Counter(AtomicU32);

struct Slow;

impl Deferred for Slow {
    fn finish(self: Box<Self>, reply: &mut Encoder) -> Done {
        reply.value(&99_u32);
        Done::default()
    }
}

impl Program<()> for Counter {
    fn number(&self) -> u32 {
        5
    }

    fn versions(&self) -> RangeInclusive<u32> {
        2..=3
    }

    fn procedure_name(&self, _: u32, _: u32) -> &'static str {
        "COUNT"
    }

    fn repeat(&self, _: u32, procedure: u32) -> Repeat {
        if matches!(procedure, 1 | 5) { Repeat::Remember } else { Repeat::Harmless }
    }

    fn call(&self, call: &Call<'_>, (): &(), reply: &mut Encoder) -> Outcome {
        reply.value(&self.0.fetch_add(1, Ordering::Relaxed));
        match call.header.procedure {
            0 | 1 => Outcome::Done(Done::default()),
            2 | 5 => Outcome::Deferred(Box::new(Slow)),
            3 => Outcome::Denied(AuthStat::TooWeak),
            4 if call.arguments::<u32>().is_err() => Outcome::GarbageArgs,
            _ => Outcome::ProcUnavail,
        }
    }
}

fn record(program: u32, version: u32, procedure: u32) -> Vec<u8> {
    let (credential, verifier) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
    let mut encoder = Encoder::new();
    encoder.value(&CallHeader { xid: 7, program, version, procedure, credential, verifier });
    encoder.bytes().to_vec()
}

/// Returns the words of the reply after the record mark, which is checked.
fn reply(dispatcher: &Dispatcher<(), impl Gate<()>>, record: &[u8]) -> Vec<u32> {
    let mut replies = Encoder::new();
    if let Answered::Later(late) = dispatcher.answer(record, PEER, &(), &mut replies).unwrap() {
        assert!(replies.bytes().is_empty(), "an unfinished reply is removed");
        late.finish(&mut replies);
    }
    let mut decoder = Decoder::new(replies.bytes());
    let mark: u32 = decoder.value().unwrap();
    assert_eq!(mark as usize, (1 << 31) | decoder.rest().len());
    std::iter::from_fn(|| decoder.value().ok()).collect()
}

fn dispatcher() -> Dispatcher<(), OpenGate> {
    Dispatcher::new(vec![Arc::new(Counter::default())], OpenGate)
}

#[test]
fn an_accepted_call_has_its_results_behind_the_header() {
    assert_eq!(reply(&dispatcher(), &record(5, 3, 0)), [7, 1, 0, 0, 0, 0, 0]);
}

#[test]
fn an_unknown_program_is_prog_unavail() {
    assert_eq!(reply(&dispatcher(), &record(6, 3, 0)), [7, 1, 0, 0, 0, 1]);
}

#[test]
fn an_unknown_version_is_prog_mismatch_with_the_range() {
    assert_eq!(reply(&dispatcher(), &record(5, 4, 0)), [7, 1, 0, 0, 0, 2, 2, 3]);
}

#[test]
fn an_unknown_procedure_is_proc_unavail_and_leaves_no_results() {
    assert_eq!(reply(&dispatcher(), &record(5, 3, 9)), [7, 1, 0, 0, 0, 3]);
}

#[test]
fn arguments_that_break_off_are_garbage_args() {
    assert_eq!(reply(&dispatcher(), &record(5, 3, 4)), [7, 1, 0, 0, 0, 4]);
}

#[test]
fn a_refused_credential_is_an_auth_error() {
    assert_eq!(reply(&dispatcher(), &record(5, 3, 3)), [7, 1, 1, 1, 5]);
}

#[test]
fn another_rpc_version_is_a_mismatch() {
    let mut record = record(5, 3, 0);
    record[11] = 9;
    assert_eq!(reply(&dispatcher(), &record), [7, 1, 1, 0, 2, 2]);
}

#[test]
fn a_reply_sent_to_a_server_ends_the_connection() {
    let mut record = record(5, 3, 0);
    record[7] = 1;
    assert!(dispatcher().answer(&record, PEER, &(), &mut Encoder::new()).is_err());
}

#[test]
fn a_deferred_reply_comes_when_it_is_finished() {
    assert_eq!(reply(&dispatcher(), &record(5, 3, 2)), [7, 1, 0, 0, 0, 0, 99]);
}

#[test]
fn a_copy_of_a_call_being_done_is_dropped_and_the_next_gets_the_answer() {
    let dispatcher = dispatcher();
    let record = record(5, 3, 5);
    let mut replies = Encoder::new();
    let Ok(Answered::Later(late)) = dispatcher.answer(&record, PEER, &(), &mut replies) else {
        panic!("the call is not slow");
    };
    let copy = dispatcher.answer(&record, PEER, &(), &mut replies);
    assert!(matches!(copy, Ok(Answered::Never)) && replies.bytes().is_empty());
    // Its connection may have ended.
    late.finish(&mut Encoder::new());
    assert_eq!(reply(&dispatcher, &record), [7, 1, 0, 0, 0, 0, 99]);
    assert_eq!(dispatcher.repeats(), 2);
}

#[test]
fn a_repeated_change_is_made_once_and_answered_twice() {
    let dispatcher = dispatcher();
    let first = reply(&dispatcher, &record(5, 3, 1));
    assert_eq!(reply(&dispatcher, &record(5, 3, 1)), first);
    assert_ne!(reply(&dispatcher, &record(5, 3, 0)), reply(&dispatcher, &record(5, 3, 0)));
}

/// Admits every peer in the same way.
struct Says(Admission);

impl Gate<()> for Says {
    fn admits(&self, (): &()) -> Admission {
        self.0
    }
}

fn behind(admission: Admission) -> (Dispatcher<(), Says>, Arc<Counter>) {
    let counter = Arc::<Counter>::default();
    (Dispatcher::new(vec![Arc::clone(&counter) as _], Says(admission)), counter)
}

#[test]
fn a_refused_peer_reaches_no_program_but_by_null() {
    let (dispatcher, counter) = behind(Admission::Refused(AuthStat::BadCred));
    let denied = [7, 1, 1, 1, AuthStat::BadCred as u32];
    for (program, version, procedure) in [(5, 3, 1), (5, 3, 2), (5, 3, 9), (5, 4, 1), (6, 3, 1)] {
        assert_eq!(reply(&dispatcher, &record(program, version, procedure)), denied);
    }
    let done = || counter.0.load(Ordering::Relaxed);
    assert_eq!(done(), 0, "no program was called");
    assert_eq!(reply(&dispatcher, &record(5, 3, 0)), [7, 1, 0, 0, 0, 0, 0]);
    assert_eq!(reply(&dispatcher, &record(5, 4, 0)), [7, 1, 0, 0, 0, 2, 2, 3]);
    assert_eq!(done(), 1);
}

#[test]
fn a_refused_peer_gets_no_remembered_answer_and_has_none_remembered() {
    let gate = Arc::new(Mutex::new(Admission::Admitted));
    let dispatcher = Dispatcher::new(vec![Arc::<Counter>::default() as _], Turned(gate.clone()));
    let answer = reply(&dispatcher, &record(5, 3, 1));
    *gate.lock().unwrap() = Admission::Refused(AuthStat::TooWeak);
    assert_eq!(reply(&dispatcher, &record(5, 3, 1)), [7, 1, 1, 1, AuthStat::TooWeak as u32]);
    *gate.lock().unwrap() = Admission::Admitted;
    assert_eq!(reply(&dispatcher, &record(5, 3, 1)), answer, "the refusal was not remembered");
    assert_eq!(dispatcher.repeats(), 1);
}

/// Admits peers as the test sets it.
struct Turned(Arc<Mutex<Admission>>);

impl Gate<()> for Turned {
    fn admits(&self, (): &()) -> Admission {
        *self.0.lock().unwrap()
    }
}

#[test]
fn a_call_of_an_undecided_peer_is_not_begun() {
    let (dispatcher, counter) = behind(Admission::Undecided);
    let mut replies = Encoder::new();
    let answered = dispatcher.answer(&record(5, 3, 1), PEER, &(), &mut replies);
    assert!(matches!(answered, Ok(Answered::Undecided)) && replies.bytes().is_empty());
    assert_eq!(counter.0.load(Ordering::Relaxed), 0);
}

/// Sets the verifier of every reply to nine bytes that end in the procedure's number.
struct Proving;

impl Gate<()> for Proving {
    fn admits(&self, (): &()) -> Admission {
        Admission::Admitted
    }

    fn reply_verifier(&self, call: &CallHeader<'_>, (): &()) -> ReplyVerifier {
        let body = [&b"verifier"[..], &[call.procedure as u8]].concat();
        ReplyVerifier::filled(Flavor::GSS, &body).unwrap()
    }
}

#[test]
fn the_gate_sets_the_verifier_of_every_accepted_reply() {
    let dispatcher = Dispatcher::new(vec![Arc::new(Counter::default()) as _], Arc::new(Proving));
    let [veri, fier] = [u32::from_be_bytes(*b"veri"), u32::from_be_bytes(*b"fier")];
    let cases: [(Vec<u8>, &[u32]); 7] = [
        (record(5, 3, 0), &[0, 0]),
        (record(5, 3, 2), &[0, 99]),
        (record(6, 3, 0), &[1]),
        (record(5, 4, 0), &[2, 2, 3]),
        (record(5, 3, 9), &[3]),
        (record(5, 3, 4), &[4]),
        (record(5, 3, 5), &[0, 99]),
    ];
    for (record, rest) in cases {
        let procedure = u32::from(record[23]);
        let expected = [&[7, 1, 0, 6, 9, veri, fier, procedure << 24][..], rest].concat();
        assert_eq!(reply(&dispatcher, &record), expected);
    }
}

#[test]
fn a_denied_reply_has_no_verifier() {
    let dispatcher = Dispatcher::new(vec![Arc::new(Counter::default()) as _], Proving);
    let too_weak = AuthStat::TooWeak as u32;
    assert_eq!(reply(&dispatcher, &record(5, 3, 3)), [7, 1, 1, 1, too_weak]);
}

#[test]
fn a_verifier_above_400_bytes_is_refused() {
    assert!(ReplyVerifier::filled(Flavor::GSS, &[0; 400]).is_some());
    assert_eq!(ReplyVerifier::filled(Flavor::GSS, &[0; 401]), None);
}

/// Allows a peer to begin TLS, or not.
struct Tls(bool);

impl Gate<()> for Tls {
    fn admits(&self, (): &()) -> Admission {
        Admission::Refused(AuthStat::BadCred)
    }

    fn starts_tls(&self, (): &()) -> bool {
        self.0
    }
}

/// A probe for TLS, with these bodies of the credential and the verifier.
fn probe(program: u32, procedure: u32, bodies: [&[u8]; 2]) -> Vec<u8> {
    let [credential, verifier] = bodies.map(Opaque);
    let mut encoder = Encoder::new();
    let credential = OpaqueAuth { flavor: Flavor::TLS, body: credential };
    let verifier = OpaqueAuth { flavor: Flavor::NONE, body: verifier };
    let version = 3;
    encoder.value(&CallHeader { xid: 7, program, version, procedure, credential, verifier });
    encoder.bytes().to_vec()
}

fn with_tls(offered: bool) -> Dispatcher<(), Tls> {
    Dispatcher::new(vec![Arc::new(Counter::default()) as _], Tls(offered))
}

#[test]
fn a_probe_for_tls_is_answered_starttls_before_the_peer_is_judged() {
    let dispatcher = with_tls(true);
    let [start, tls] = [u32::from_be_bytes(*b"STAR"), u32::from_be_bytes(*b"TTLS")];
    let call = probe(5, 0, [b"", b""]);
    assert_eq!(reply(&dispatcher, &call), [7, 1, 0, 0, 8, start, tls, 0]);
    let answered = dispatcher.answer(&call, PEER, &(), &mut Encoder::new());
    assert!(matches!(answered, Ok(Answered::StartTls)));
    // A program that does not exist has no TLS channel either.
    assert_eq!(reply(&dispatcher, &probe(6, 0, [b"", b""])), [7, 1, 0, 0, 0, 1]);
}

#[test]
fn a_malformed_or_unaccepted_probe_is_refused() {
    let bad_credential = [7, 1, 1, 1, AuthStat::BadCred as u32];
    for (offered, call) in [
        (false, probe(5, 0, [b"", b""])),
        (true, probe(5, 0, [b"body", b""])),
        (true, probe(5, 0, [b"", b"body"])),
        (true, probe(5, 1, [b"", b""])),
    ] {
        let dispatcher = with_tls(offered);
        assert_eq!(reply(&dispatcher, &call), bad_credential);
        let answered = dispatcher.answer(&call, PEER, &(), &mut Encoder::new());
        assert!(!matches!(answered, Ok(Answered::StartTls)));
    }
}
