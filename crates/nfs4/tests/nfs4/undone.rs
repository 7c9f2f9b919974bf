//! An operation that creates an object and then fails removes that object, and no other.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use comity_export::{Client, HandleKey, Plan};
use comity_proto::nfs4::{
    Bitmap4, Create4args, Createhow4, Createtype4, Creatverfattr, Fattr4, Nfsace4, Nfsstat4,
    Openflag4, attribute as a, operation as op,
};
use comity_state::{Limits, SessionId};
use comity_vfs::layers::{Faults, Hook, Layer, Verb, When};
use comity_vfs::{Create, Cred, Fs, Gid, Handle, Name, Result, SetAttr, Status, Uid};
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

/// A session of a client that gets no delegations, because it cannot be called back.
fn never_called_back(world: &World, name: &[u8]) -> Session {
    let session = Session::of(world, 1, name);
    let client = world.engine.session(&SessionId(session.id())).unwrap();
    let client = client.client();
    world.engine.reclaim_complete(world.now(), client, client.caller()).unwrap();
    session
}

/// Returns whether the directory has an entry of this name.
fn is_there(world: &World, session: &mut Session, name: &[u8]) -> bool {
    let (status, _) = perform(world, 1, session, 4, |call| go_to(call, &[PUB[0], PUB[1], name]));
    status == Nfsstat4::Ok
}

/// A server on whose file system a verb fails.
fn failing(verb: Verb) -> World {
    let fs = memory();
    furnish(&*fs);
    let faults = Faults::new(1).fail(verb, Status::Io, When::Always);
    offering(&(Arc::new(Layer::new(fs, faults)) as Arc<dyn Fs>))
}

fn offering(fs: &Arc<dyn Fs>) -> World {
    let export = export(1, "/srv/pub", fs, Client::Everybody);
    World::of(Plan::new(HandleKey::new([7; 16]), vec![export]))
}

thread_local! {
    static INTERLUDE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// A file system that cannot set ACLs, where something else happens before a call that sets one
/// fails.
struct FailsLate;

impl Hook for FailsLate {
    fn around<T>(&self, verb: Verb, _: &Handle, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if verb != Verb::Setacl {
            return work();
        }
        if let Some(interlude) = INTERLUDE.take() {
            interlude();
        }
        Err(Status::Io)
    }
}

/// An ACL that lets the owner read.
fn acl() -> Vec<u8> {
    let (acetype, flag, access_mask, who) = (0, 0, 1, Opaque(&b"OWNER@"[..]));
    let mut values = Encoder::new();
    values.value(&Counted::<_, 1>(vec![Nfsace4 { acetype, flag, access_mask, who }]));
    values.bytes().to_vec()
}

/// A client makes a file whose ACL cannot be set, while another client does something. Returns
/// whether the file exists afterwards.
fn stays(how: Createhow4<'_>, meanwhile: impl FnOnce(&World, &dyn Fs) + 'static) -> bool {
    let fs = memory();
    furnish(&*fs);
    let world = Rc::new(offering(&(Arc::new(Layer::new(Arc::clone(&fs), FailsLate)) as _)));
    let mut one = session(&world, b"one");
    let shared = Rc::clone(&world);
    INTERLUDE.set(Some(Box::new(move || meanwhile(&shared, &*fs))));
    let wanted = (&b"new"[..], Openflag4::Create(how));
    assert_eq!(open((&world, &mut one), &PUB, wanted), Nfsstat4::Io);
    assert!(INTERLUDE.take().is_none(), "the other client had no turn");
    is_there(&world, &mut one, b"new")
}

const fn exclusive(attrs: Fattr4<'_>) -> Createhow4<'_> {
    Createhow4::Exclusive41(Creatverfattr { verf: [3; 8], attrs })
}

/// The client repeats the call, and would get EXIST because of its own file.
#[test]
fn a_file_made_by_an_open_above_the_limits_is_removed_again() {
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

/// The object was made by an earlier call or by another client.
#[test]
fn an_existing_file_is_not_removed() {
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
fn a_file_whose_attributes_cannot_be_set_is_removed_again() {
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
fn a_directory_whose_acl_cannot_be_set_is_removed_again() {
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

/// The other client uses the file now and would lose its data.
#[test]
fn a_new_file_that_another_client_has_opened_meanwhile_is_not_removed() {
    let acl = acl();
    let with_acl = Fattr4 { attrmask: Bitmap4::of(&[a::ACL]), attr_vals: Opaque(&acl) };
    for how in [Createhow4::Guarded(with_acl), Createhow4::Unchecked(with_acl), exclusive(with_acl)]
    {
        let opens = |world: &World, _: &dyn Fs| {
            let mut two = never_called_back(world, b"two");
            let wanted = (&b"new"[..], Openflag4::NoCreate);
            assert_eq!(open((world, &mut two), &PUB, wanted), Nfsstat4::Ok);
        };
        assert!(stays(how, opens), "{how:?}");
        assert!(!stays(how, |_, _| {}), "{how:?}: nobody has it open");
    }
}

/// A program on the server, or a client of NFSv3, whose opens the server cannot see.
#[test]
fn a_new_file_that_was_written_meanwhile_is_not_removed() {
    let acl = acl();
    let with_acl = Fattr4 { attrmask: Bitmap4::of(&[a::ACL]), attr_vals: Opaque(&acl) };
    let writes = |_: &World, fs: &dyn Fs| {
        let (root, server) = (fs.root(), Cred::new(Uid::new(0), Gid::new(0)));
        let new = fs.lookup(&server, &root, Name::new(b"new").unwrap()).unwrap();
        fs.write(&server, &new.node.handle, 0, b"data").unwrap();
    };
    assert!(stays(Createhow4::Guarded(with_acl), writes));
}

#[test]
fn another_file_that_got_the_name_meanwhile_is_not_removed() {
    let acl = acl();
    let with_acl = Fattr4 { attrmask: Bitmap4::of(&[a::ACL]), attr_vals: Opaque(&acl) };
    let replaces = |_: &World, fs: &dyn Fs| {
        let (root, server) = (fs.root(), Cred::new(Uid::new(0), Gid::new(0)));
        let [old, new] = [b"other", &b"new"[..]].map(|name| Name::new(name).unwrap());
        fs.create(&server, &root, old, &Create::Guarded(SetAttr::default())).unwrap();
        fs.rename(&server, (&root, old), (&root, new)).unwrap();
    };
    assert!(stays(Createhow4::Guarded(with_acl), replaces));
}

/// The size is still the original one, but the content may not be.
#[test]
fn a_new_file_of_the_same_size_that_was_written_meanwhile_is_not_removed() {
    let acl = acl();
    let with_acl = Fattr4 { attrmask: Bitmap4::of(&[a::ACL]), attr_vals: Opaque(&acl) };
    let writes = |_: &World, fs: &dyn Fs| {
        let (root, server) = (fs.root(), Cred::new(Uid::new(0), Gid::new(0)));
        let new = fs.lookup(&server, &root, Name::new(b"new").unwrap()).unwrap();
        fs.write(&server, &new.node.handle, 0, b"data").unwrap();
        let emptied = SetAttr { size: Some(0), ..SetAttr::default() };
        fs.setattr(&server, &new.node.handle, &emptied, None).unwrap();
    };
    assert!(stays(Createhow4::Guarded(with_acl), writes));
}
