//! A client is told that its leases have moved with an export, until it has asked where that is
//! (RFC 8881, 18.46.3; RFC 7530, 13.1.5.4).

use std::path::Path;
use std::sync::Arc;

use comity_proto::nfs4::{
    Bitmap4, Component4, CompoundHead, CompoundResultHead, Nfsstat4, Sequence4resok,
    operation as op,
};
use comity_state::{Claim, Client, ClientId, DelegationWish, FileKey, Open, SessionId, Share};
use comity_vfs::Handle;
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::attributes::bitmap;
use crate::owners::{call, introduce};
use crate::referrals::{EXPORTS, world};
use crate::session::Session;
use crate::world::World;

const VOLUME: u64 = 9;

/// The client had a file of the export `away` open when that moved.
fn lose(world: &World, client: &Arc<Client>) {
    let plan = world.exports.current();
    let is_away = |path: &Path| path == Path::new("/srv/away");
    let export = plan.exports().iter().find(|it| is_away(it.path())).unwrap().id().0;
    let (caller, claim, wish) = (client.caller(), Claim::New, DelegationWish::None);
    let (owner, share, empties) = (&b"opener"[..], Share::access(Share::READ), false);
    let (user, grantee) = (None, None);
    let file = FileKey { volume: VOLUME, export, handle: Handle::new(&[1]).unwrap() };
    let args = Open { client, caller, owner, file, share, claim, wish, user, grantee, empties };
    world.engine.open(world.now(), &args).unwrap();
    world.engine.forget_volume(world.now(), VOLUME, &[export]);
}

/// Appends three operations: a GETATTR of the absent file system.
fn ask(call: &mut Encoder, wanted: &[&str]) {
    call.value(&op::PUTROOTFH);
    for name in [&b"srv"[..], b"away"] {
        call.value(&op::LOOKUP);
        call.value::<Component4<'_>>(&Opaque(name));
    }
    call.value(&op::GETATTR);
    call.value::<Bitmap4>(&bitmap(wanted));
}

/// Sends a SEQUENCE, and asks for these attributes; returns the status of the COMPOUND and whether
/// SEQUENCE told of a move.
fn told(world: &World, minor: u32, session: &mut Session, wanted: &[&str]) -> (Nfsstat4, bool) {
    let mut call = Encoder::new();
    let operations = if wanted.is_empty() { 1 } else { 5 };
    call.value(&CompoundHead { tag: Opaque(b""), minorversion: minor, operations });
    session.sequence(&mut call);
    if !wanted.is_empty() {
        ask(&mut call, wanted);
    }
    let (answer, _) = world.compound(call.bytes());
    let mut answer = Decoder::new(&answer);
    let status = answer.value::<CompoundResultHead<'_>>().unwrap().status;
    let _ = (answer.value::<u32>().unwrap(), answer.value::<u32>().unwrap());
    let flags = answer.value::<Sequence4resok>().unwrap().status_flags;
    (status, flags & comity_proto::nfs4::seq4_status::LEASE_MOVED != 0)
}

#[test]
fn sequence_tells_of_a_move_until_the_client_has_asked_for_the_locations() {
    for minor in [1, 2] {
        let world = world(EXPORTS);
        let [mut session, mut other] =
            [&b"one"[..], b"other"].map(|name| Session::of(&world, minor, name));
        session.call_back(&world);
        let known = world.engine.session(&SessionId(session.id())).unwrap();
        lose(&world, known.client());
        let mut said = |wanted: &[&str]| told(&world, minor, &mut session, wanted);
        assert_eq!(said(&[]), (Nfsstat4::Ok, true));
        assert_eq!(said(&["type"]), (Nfsstat4::Moved, true));
        let mut by_other = |wanted: &[&str]| told(&world, minor, &mut other, wanted);
        assert_eq!(by_other(&["fs_locations"]), (Nfsstat4::Ok, false));
        assert_eq!(said(&[]), (Nfsstat4::Ok, true), "only the other client asked");
        assert_eq!(said(&["fs_locations"]), (Nfsstat4::Ok, false), "it is told in this COMPOUND");
        assert_eq!(said(&[]), (Nfsstat4::Ok, false));
    }
}

/// A listing is read ahead, by any user of the client: it does not show that the client has seen
/// MOVED and asks for the place of what it has lost.
#[test]
fn a_listing_with_locations_does_not_end_the_notice_of_a_move() {
    let world = world(EXPORTS);
    let mut session = Session::of(&world, 1, b"one");
    session.call_back(&world);
    lose(&world, world.engine.session(&SessionId(session.id())).unwrap().client());
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion: 1, operations: 4 });
    session.sequence(&mut call);
    call.value(&op::PUTROOTFH);
    call.value(&op::LOOKUP);
    call.value::<Component4<'_>>(&Opaque(b"srv"));
    call.value(&op::READDIR);
    // The cookie and its verifier; room for names, and for the reply.
    call.words([0, 0, 0, 0, 4096, 4096]);
    call.value::<Bitmap4>(&bitmap(&["rdattr_error", "fs_locations"]));
    let (answer, _) = world.compound(call.bytes());
    assert_eq!(status(&answer), Nfsstat4::Ok);
    assert!(answer.windows(13).any(|part| part == b"b.example.org"), "it tells the place");
    assert_eq!(told(&world, 1, &mut session, &[]), (Nfsstat4::Ok, true));
    assert_eq!(told(&world, 1, &mut session, &["fs_locations"]), (Nfsstat4::Ok, false));
}

fn renew(call: &mut Encoder, clientid: u64) {
    call.value(&op::RENEW);
    call.value(&clientid);
}

/// Linux appends a RENEW to the GETATTR, because in 4.0 nothing else names the client.
#[test]
fn renew_tells_of_a_move_until_it_stands_behind_a_question_for_the_locations() {
    let world = world(EXPORTS);
    let clientid = introduce(&world);
    let client = world.engine.client_by_id(ClientId(clientid)).unwrap();
    let alone = || status(&call(&world, 1, |call| renew(call, clientid)));
    let asked = |wanted: &[&str]| {
        let behind = call(&world, 5, |call| {
            ask(call, wanted);
            renew(call, clientid);
        });
        status(&behind)
    };
    assert_eq!(alone(), Nfsstat4::Ok);
    lose(&world, &client);
    assert_eq!(
        [alone(), asked(&["type"]), alone()],
        [Nfsstat4::LeaseMoved, Nfsstat4::Moved, Nfsstat4::LeaseMoved]
    );
    let apart = status(&call(&world, 4, |call| ask(call, &["fs_locations"])));
    assert_eq!([apart, alone()], [Nfsstat4::Ok, Nfsstat4::LeaseMoved]);
    assert_eq!([asked(&["fs_locations"]), alone()], [Nfsstat4::Ok, Nfsstat4::Ok]);
}

fn status(answer: &[u8]) -> Nfsstat4 {
    Decoder::new(answer).value::<CompoundResultHead<'_>>().unwrap().status
}
