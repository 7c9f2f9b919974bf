//! A request that comes again, and another in its place (RFC 8881, 2.10.6.1.3.1).

use comity_proto::nfs4::{
    CompoundHead, CompoundResultHead, Nfsstat4, Sequence4args, operation as op,
};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::session::Session;
use crate::world::World;

/// The first request of a session: looks up a name.
fn request(session: &Session, name: &[u8]) -> Vec<u8> {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion: 1, operations: 3 });
    call.value(&op::SEQUENCE);
    let (sequenceid, slotid, highest_slotid) = (1, 0, 0);
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
fn who_asks_again_has_the_same_answer_and_who_asks_for_something_else_has_none() {
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
