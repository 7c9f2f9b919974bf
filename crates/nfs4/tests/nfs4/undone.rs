//! An operation that fails after it has made something takes that back, and nothing else.

use std::sync::Arc;

use comity_export::{Client, HandleKey, Plan};
use comity_proto::nfs4::{
    Bitmap4, Create4args, Createhow4, Createtype4, Creatverfattr, Fattr4, Nfsace4, Nfsstat4,
    Openflag4, attribute as a, operation as op,
};
use comity_state::Limits;
use comity_vfs::layers::{Faults, Layer, Verb, When};
use comity_vfs::{Fs, Status};
use comity_xdr::{Counted, Encoder, Opaque};

use crate::callbacks::{go_to, perform};
use crate::opens::{NOTHING, open};
use crate::session::Session;
use crate::world::{World, export, furnish, memory};

const PUB: [&[u8]; 2] = [b"srv", b"pub"];

fn session(world: &World, name: &[u8]) -> Session {
    let session = Session::of(world, 1, name);
    session.call_back(world);
    session
}

/// Returns whether the directory has such a name.
fn is_there(world: &World, session: &mut Session, name: &[u8]) -> bool {
    let (status, _) = perform(world, 1, session, 4, |call| go_to(call, &[PUB[0], PUB[1], name]));
    status == Nfsstat4::Ok
}

/// A world where a verb of the file system fails.
fn failing(verb: Verb) -> World {
    let fs = memory();
    furnish(&*fs);
    let faults = Faults::new(1).fail(verb, Status::Io, When::Always);
    let fs: Arc<dyn Fs> = Arc::new(Layer::new(fs, faults));
    let export = export(1, "/srv/pub", &fs, Client::Everybody);
    World::of(Plan::new(HandleKey::new([7; 16]), vec![export]))
}

/// An ACL that lets the owner read.
fn acl() -> Vec<u8> {
    let (acetype, flag, access_mask, who) = (0, 0, 1, Opaque(&b"OWNER@"[..]));
    let mut values = Encoder::new();
    values.value(&Counted::<_, 1>(vec![Nfsace4 { acetype, flag, access_mask, who }]));
    values.bytes().to_vec()
}

const fn exclusive(attrs: Fattr4<'_>) -> Createhow4<'_> {
    Createhow4::Exclusive41(Creatverfattr { verf: [3; 8], attrs })
}

/// The client asks again, and would be told EXIST of its own file.
#[test]
fn a_file_made_for_an_open_that_there_is_no_room_for_is_taken_back() {
    let hows = [
        Createhow4::Guarded(NOTHING),
        Createhow4::Unchecked(NOTHING),
        Createhow4::Exclusive([3; 8]),
        exclusive(NOTHING),
    ];
    for how in hows {
        let world = World::bearing(Limits { states_per_client: 1, ..Limits::DEFAULT });
        let mut one = session(&world, b"one");
        let mut open = |name: &[u8]| open((&world, &mut one), &PUB, (name, Openflag4::Create(how)));
        assert_eq!(open(b"first"), Nfsstat4::Ok);
        assert_eq!(open(b"second"), Nfsstat4::Delay);
        assert!(!is_there(&world, &mut one, b"second"), "{how:?}");
        assert!(is_there(&world, &mut one, b"first"));
    }
}

/// It was made by an earlier call, or by somebody else.
#[test]
fn a_file_that_was_there_is_not_taken_back() {
    for how in [Createhow4::Unchecked(NOTHING), exclusive(NOTHING)] {
        let world = World::bearing(Limits { states_per_client: 1, ..Limits::DEFAULT });
        let (mut one, mut two) = (session(&world, b"one"), session(&world, b"two"));
        let wanted = |name: &'static [u8]| (name, Openflag4::Create(how));
        assert_eq!(open((&world, &mut one), &PUB, wanted(b"new")), Nfsstat4::Ok);
        assert_eq!(open((&world, &mut two), &PUB, wanted(b"other")), Nfsstat4::Ok);
        assert_eq!(open((&world, &mut two), &PUB, wanted(b"new")), Nfsstat4::Delay);
        assert!(is_there(&world, &mut one, b"new"), "{how:?}");
    }
}

#[test]
fn a_file_whose_attributes_cannot_be_set_is_taken_back() {
    let acl = acl();
    let with_acl = Fattr4 { attrmask: Bitmap4::of(&[a::ACL]), attr_vals: Opaque(&acl) };
    let mode = Fattr4 { attrmask: Bitmap4::of(&[a::MODE]), attr_vals: Opaque(&[0, 0, 1, 0xa4]) };
    for (verb, how) in [
        (Verb::Setacl, Createhow4::Guarded(with_acl)),
        (Verb::Setacl, Createhow4::Unchecked(with_acl)),
        (Verb::Setacl, exclusive(with_acl)),
        (Verb::Setattr, exclusive(mode)),
    ] {
        let world = failing(verb);
        let mut one = session(&world, b"one");
        let wanted = (&b"new"[..], Openflag4::Create(how));
        assert_eq!(open((&world, &mut one), &PUB, wanted), Nfsstat4::Io);
        assert!(!is_there(&world, &mut one, b"new"), "{how:?}");
        assert_eq!(world.engine.census().opens, 0);
    }
}

#[test]
fn a_directory_whose_acl_cannot_be_set_is_taken_back() {
    let (world, acl) = (failing(Verb::Setacl), acl());
    let mut one = session(&world, b"one");
    let createattrs = Fattr4 { attrmask: Bitmap4::of(&[a::ACL]), attr_vals: Opaque(&acl) };
    let (status, _) = perform(&world, 1, &mut one, 4, |call| {
        go_to(call, &PUB);
        call.value(&op::CREATE);
        let (objtype, objname) = (Createtype4::Dir, Opaque(&b"new"[..]));
        call.value(&Create4args { objtype, objname, createattrs });
    });
    assert_eq!(status, Nfsstat4::Io);
    assert!(!is_there(&world, &mut one, b"new"));
}
