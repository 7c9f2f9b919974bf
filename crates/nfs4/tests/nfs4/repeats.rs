//! A repeated request, and another request with the same sequence number (RFC 8881, 2.10.6.1.3.1).

use comity_proto::nfs4::{
    CompoundHead, CompoundResultHead, Nfsstat4, Sequence4args, operation as op,
};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::script::Script;
use crate::session::Session;
use crate::world::World;

/// The first request of a session, which looks up a name.
fn request(session: &Session, name: &[u8]) -> Vec<u8> {
    request_with(session, name, 0)
}

/// The same, while the client uses the slots up to `highest_slotid`.
fn request_with(session: &Session, name: &[u8], highest_slotid: u32) -> Vec<u8> {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion: 1, operations: 3 });
    call.value(&op::SEQUENCE);
    let (sequenceid, slotid) = (1, 0);
    let sessionid = session.id();
    let cachethis = true;
    call.value(&Sequence4args { sessionid, sequenceid, slotid, highest_slotid, cachethis });
    call.value(&op::PUTROOTFH);
    call.value(&op::LOOKUP);
    call.opaque(name);
    call.bytes().to_vec()
}

fn status(reply: &[u8]) -> Nfsstat4 {
    let head: CompoundResultHead<'_> = Decoder::new(reply).value().unwrap();
    head.status
}

#[test]
fn a_repeated_call_has_the_same_answer_and_another_call_has_none() {
    let world = World::new();
    world.act_as(1000, 1000, &[]);
    let session = Session::open(&world, 1);
    let (answer, _) = world.compound(&request(&session, b"srv"));
    assert_eq!(status(&answer), Nfsstat4::Ok);
    assert_eq!(world.compound(&request(&session, b"srv")).0, answer);
    for other in [&b"rrv"[..], b"ssv", b"srw", b"srv2"] {
        let (refused, _) = world.compound(&request(&session, other));
        assert_eq!(status(&refused), Nfsstat4::SeqFalseRetry, "{other:?}");
    }
    world.act_as(1001, 1000, &[]);
    assert_eq!(status(&world.compound(&request(&session, b"srv")).0), Nfsstat4::SeqFalseRetry);
}

#[test]
fn a_repeated_call_may_name_another_highest_slot() {
    let world = World::new();
    let session = Session::open(&world, 1);
    let (answer, _) = world.compound(&request_with(&session, b"srv", 5));
    assert_eq!(status(&answer), Nfsstat4::Ok);
    assert_eq!(world.compound(&request_with(&session, b"srv", 0)).0, answer);
}

/// A call that SEQUENCE refuses does not change the slot (RFC 8881, 18.46.3): the next call has the
/// same sequence number.
#[test]
fn a_request_above_the_limits_of_the_session_does_not_change_its_slot() {
    let world = World::new();
    world.act_as(1000, 1000, &[]);
    let session = Session::open(&world, 1);
    let many = [many_operations(&session), vec![0; 2 << 20]];
    let big = [request(&session, b"srv"), vec![0; 2 << 20]];
    for (beyond, refusal) in [
        (many_operations(&session), Nfsstat4::TooManyOps),
        (big.concat(), Nfsstat4::ReqTooBig),
        (many.concat(), Nfsstat4::ReqTooBig),
    ] {
        assert_eq!(status(&world.compound(&beyond).0), refusal);
    }
    let (answer, _) = world.compound(&request(&session, b"srv"));
    assert_eq!(status(&answer), Nfsstat4::Ok);
    assert_eq!(world.compound(&request(&session, b"srv")).0, answer);
}

/// The first request of a session, with one operation more than allowed.
fn many_operations(session: &Session) -> Vec<u8> {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion: 1, operations: 65 });
    call.value(&op::SEQUENCE);
    let (sequenceid, slotid, highest_slotid) = (1, 0, 0);
    let (sessionid, cachethis) = (session.id(), true);
    call.value(&Sequence4args { sessionid, sequenceid, slotid, highest_slotid, cachethis });
    (0..64).for_each(|_| call.value(&op::PUTROOTFH));
    call.bytes().to_vec()
}

/// Over 4.0, a change is made once however many other calls its client makes meanwhile, because
/// calls that change nothing are not kept for retries.
#[test]
fn calls_that_change_nothing_evict_no_kept_reply() {
    let world = World::new();
    let mut script = Script::new(&world);
    let make = "PUTROOTFH; LOOKUP srv; LOOKUP pub; CREATE dir made mode=755";
    let made = script.line(make);
    assert!(made[3].starts_with("CREATE OK"), "{made:?}");
    let first = world.last_xid();
    let mut look = Encoder::new();
    look.value(&CompoundHead { tag: Opaque(b""), minorversion: 0, operations: 1 });
    look.value(&op::PUTROOTFH);
    for _ in 0..24_000 {
        world.compound(look.bytes());
    }
    world.go_on_after(first - 1);
    assert_eq!(script.line(make)[..4], made[..4], "the same call has the same answer");
    assert_eq!(script.line(make)[3], "CREATE EXIST", "another call");
}
