//! OPEN of objects that cannot be opened, or whose reply would not fit, and names that an export
//! does not accept.

use std::path::PathBuf;
use std::sync::Arc;

use comity_export::{Client, Export, ExportId, HandleKey, Ids, Plan, Rules, Squash};
use comity_proto::nfs4::{
    Bitmap4, Createhow4, Creatverfattr, Fattr4, Nfsstat4, Open4args, Open4resok, OpenClaim4,
    Openflag4, StateOwner4, attribute as a, operation as op, share,
};
use comity_state::Limits;
use comity_xdr::{Decoder, Opaque};

use crate::callbacks::{go_to, perform};
use crate::script::Script;
use crate::session::Session;
use crate::world::{World, furnish, memory};

/// Opens a name in a directory; returns the status.
pub(crate) fn open(
    at: (&World, &mut Session),
    dir: &[&[u8]],
    wanted: (&[u8], Openflag4<'_>),
) -> Nfsstat4 {
    told(at, dir, wanted).0
}

/// Opens a name in a directory; returns the status and all results.
pub(crate) fn told(
    (world, session): (&World, &mut Session),
    dir: &[&[u8]],
    (name, openhow): (&[u8], Openflag4<'_>),
) -> (Nfsstat4, Vec<u8>) {
    perform(world, 1, session, dir.len() as u32 + 2, |call| {
        go_to(call, dir);
        call.value(&op::OPEN);
        call.value(&Open4args {
            seqid: 0,
            share_access: share::BOTH,
            share_deny: 0,
            owner: StateOwner4 { clientid: 0, owner: Opaque(b"process") },
            openhow,
            claim: OpenClaim4::Null(Opaque(name)),
        });
    })
}

pub(crate) const NOTHING: Fattr4<'static> =
    Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: Opaque(b"") };

fn made() -> Openflag4<'static> {
    Openflag4::Create(Createhow4::Guarded(NOTHING))
}

/// A file whose OPEN has no reply would stay open until the client ends.
#[test]
fn an_open_whose_reply_would_not_fit_opens_nothing() {
    let world = World::new();
    for (maxresponsesize, status) in [(560, Nfsstat4::RepTooBig), (1024, Nfsstat4::Ok)] {
        let mut session = Session::open_for(&world, 1, maxresponsesize);
        if status == Nfsstat4::RepTooBig {
            session.call_back(&world);
        }
        let (dir, name) = ([&b"srv"[..], b"pub"], (&b"file"[..], Openflag4::NoCreate));
        assert_eq!(open((&world, &mut session), &dir, name), status);
        assert_eq!(world.engine.census().opens, usize::from(status == Nfsstat4::Ok));
    }
}

/// 4.1 has no error RESOURCE (RFC 8881, 15.1), so that a client could not handle it.
#[test]
fn a_client_at_its_limit_of_opens_gets_delay() {
    let world = World::bearing(Limits { states_per_client: 1, ..Limits::DEFAULT });
    let mut session = Session::of(&world, 1, b"one");
    session.call_back(&world);
    let dir = [&b"srv"[..], b"pub"];
    let mut said = |name| open((&world, &mut session), &dir, (name, made()));
    assert_eq!(said(b"one"), Nfsstat4::Ok);
    assert_eq!(said(b"two"), Nfsstat4::Delay);
}

/// A directory, a name in it, how it is opened, and the expected status.
type Case = (&'static [&'static [u8]], &'static [u8], Openflag4<'static>, Nfsstat4);

#[test]
fn above_the_exports_there_are_directories_only() {
    let world = World::new();
    let mut session = Session::open(&world, 1);
    session.call_back(&world);
    let cases: [Case; 5] = [
        (&[], b"srv", Openflag4::NoCreate, Nfsstat4::IsDir),
        (&[b"srv"], b"pub", Openflag4::NoCreate, Nfsstat4::IsDir),
        (&[b"srv"], b"nothing", Openflag4::NoCreate, Nfsstat4::NoEnt),
        (&[b"srv"], b"nothing", made(), Nfsstat4::RoFs),
        (&[b"srv"], b"..", made(), Nfsstat4::BadName),
    ];
    for (dir, name, how, status) in cases {
        let said = open((&world, &mut session), dir, (name, how));
        assert_eq!(said, status, "{dir:?} {name:?}");
    }
}

#[test]
fn names_must_be_utf8_if_the_export_asks_for_that() {
    let fs = memory();
    furnish(&*fs);
    let ids = Ids { squash: Squash::None, ..Ids::default() };
    let rules = Rules { read_only: false, utf8_names: true, ids, ..Rules::default() };
    let clients = vec![(Client::Everybody, Arc::new(rules))];
    let export = Export::new(ExportId(1), PathBuf::from("/pub"), fs, clients);
    let world = World::of(Plan::new(HandleKey::new([7; 16]), vec![Arc::new(export)]));
    let mut script = Script::new(&world);
    script.line("PUTROOTFH; LOOKUP pub; GETFH pub");
    for (said, told) in [
        ("LOOKUP \\xff", "LOOKUP INVAL"),
        ("LOOKUP \\xef\\xbf\\xbe", "LOOKUP INVAL"),
        ("LOOKUP gr\\xc3\\xbc\\xc3\\x9f", "LOOKUP NOENT"),
        ("CREATE dir \\xed\\xa0\\x80 mode=755", "CREATE INVAL"),
        ("REMOVE \\xff", "REMOVE INVAL"),
        ("SECINFO \\xff", "SECINFO INVAL"),
        ("SAVEFH; RENAME file \\xff", "RENAME INVAL"),
        ("SAVEFH; RENAME \\xff file", "RENAME INVAL"),
        ("SAVEFH; LINK \\xff", "LINK INVAL"),
    ] {
        let lines = script.line(&format!("PUTFH @pub; {said}"));
        assert_eq!(lines.last().map(String::as_str), Some(told), "{said}");
    }
    let mut session = Session::open(&world, 1);
    session.call_back(&world);
    let name = (&b"\xff"[..], made());
    assert_eq!(open((&world, &mut session), &[b"pub"], name), Nfsstat4::Inval);
}

/// The client then sets these times. Otherwise a file made with O_EXCL would keep the bytes of the
/// verifier as its times.
#[test]
fn attributes_that_hold_the_verifier_of_an_exclusive_create_are_reported() {
    let world = World::new();
    let mut session = Session::open(&world, 1);
    session.call_back(&world);
    let held = Bitmap4::of(&[a::TIME_ACCESS, a::TIME_MODIFY]);
    let attrs = Fattr4 { attrmask: Bitmap4::of(&[a::MODE]), attr_vals: Opaque(&[0, 0, 1, 0xa4]) };
    let both = || Createhow4::Exclusive41(Creatverfattr { verf: [3; 8], attrs });
    for (name, how, set) in [
        (b"old", Createhow4::Exclusive([3; 8]), held),
        (b"new", both(), held.or(&attrs.attrmask)),
        (b"new", both(), held.or(&attrs.attrmask)),
    ] {
        let dir = [&b"srv"[..], b"pub"];
        let (_, told) = told((&world, &mut session), &dir, (name, Openflag4::Create(how)));
        let opened = Decoder::new(&told[4 * 8..]).value::<Open4resok<'_>>().unwrap();
        assert_eq!(opened.attrset, set, "{how:?}");
    }
}

/// fopen(3) with "wx" sends the size 0. Truncating the new file would change the time that stores
/// the verifier.
#[test]
fn an_exclusive_create_of_an_empty_file_is_known_again() {
    let world = World::new();
    let mut session = Session::open(&world, 1);
    session.call_back(&world);
    let empty = Fattr4 { attrmask: Bitmap4::of(&[a::SIZE]), attr_vals: Opaque(&[0; 8]) };
    for _ in 0..2 {
        let how = Createhow4::Exclusive41(Creatverfattr { verf: [3; 8], attrs: empty });
        let wanted = (&b"new"[..], Openflag4::Create(how));
        assert_eq!(open((&world, &mut session), &[b"srv", b"pub"], wanted), Nfsstat4::Ok);
    }
}

/// Linux opens a name without a LOOKUP; it opens special files itself, and reads a link after an
/// error that says that it is one.
#[test]
fn special_files_are_opened_by_the_client() {
    let world = World::new();
    let mut script = Script::new(&world);
    script.line("PUTROOTFH; LOOKUP srv; LOOKUP pub; CREATE fifo pipe mode=666");
    script.line("PUTROOTFH; LOOKUP srv; LOOKUP pub; CREATE chr null 1 3 mode=666");
    let mut session = Session::open(&world, 1);
    session.call_back(&world);
    let unchecked = || Openflag4::Create(Createhow4::Unchecked(NOTHING));
    for (name, status) in [
        (&b"pipe"[..], Nfsstat4::Symlink),
        (b"null", Nfsstat4::Symlink),
        (b"link", Nfsstat4::Symlink),
        (b"inner", Nfsstat4::IsDir),
    ] {
        for how in [Openflag4::NoCreate, unchecked()] {
            let said = open((&world, &mut session), &[b"srv", b"pub"], (name, how));
            assert_eq!(said, status, "{name:?} {how:?}");
        }
    }
}
