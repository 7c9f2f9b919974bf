//! Data and holes of files that other clients have open, or that are read-only.

use std::path::PathBuf;
use std::sync::Arc;

use comity_export::{Client, Export, ExportId, HandleKey, Ids, Plan, Rules, Squash};
use comity_proto::nfs4::{
    Bitmap4, IoAdvise4args, Nfsstat4, Open4args, Open4resok, OpenClaim4, Openflag4, Range4args,
    Read4args, Seek4args, StateOwner4, Stateid4, operation as op, share,
};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::callbacks::{go_to, perform};
use crate::session::Session;
use crate::world::{World, furnish, memory};

/// The right that an operation needs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Right {
    Read,
    Write,
    /// A client that has the file open for either access: the tables of RFC 7862, 11.2, have no
    /// OPENMODE or LOCKED for it.
    Either,
}

/// An operation of 4.2 on data, the access that it needs, and its arguments.
type Verb = (&'static str, Right, fn(&mut Encoder, Stateid4));

const VERBS: [Verb; 5] = [
    ("READ_PLUS", Right::Read, |call, stateid| {
        call.value(&op::READ_PLUS);
        call.value(&Read4args { stateid, offset: 0, count: 1 });
    }),
    ("SEEK", Right::Read, |call, stateid| {
        call.value(&op::SEEK);
        call.value(&Seek4args { stateid, offset: 0, what: 0 });
    }),
    ("IO_ADVISE", Right::Either, |call, stateid| {
        call.value(&op::IO_ADVISE);
        call.value(&IoAdvise4args { stateid, offset: 0, count: 1, hints: Bitmap4::EMPTY });
    }),
    ("ALLOCATE", Right::Write, |call, stateid| {
        call.value(&op::ALLOCATE);
        call.value(&Range4args { stateid, offset: 0, length: 1 });
    }),
    ("DEALLOCATE", Right::Write, |call, stateid| {
        call.value(&op::DEALLOCATE);
        call.value(&Range4args { stateid, offset: 0, length: 1 });
    }),
];

/// Opens the file; returns the stateid.
fn open(world: &World, session: &mut Session, access: u32, deny: u32) -> Stateid4 {
    let (status, told) = perform(world, 2, session, 4, |call| {
        go_to(call, &[b"srv", b"pub"]);
        call.value(&op::OPEN);
        call.value(&Open4args {
            seqid: 0,
            share_access: access | share::WANT_NO_DELEG,
            share_deny: deny,
            owner: StateOwner4 { clientid: 0, owner: Opaque(b"process") },
            openhow: Openflag4::NoCreate,
            claim: OpenClaim4::Null(Opaque(b"file")),
        });
    });
    assert_eq!(status, Nfsstat4::Ok);
    Decoder::new(&told[4 * 8..]).value::<Open4resok<'_>>().unwrap().stateid
}

/// The status of an operation on the file with this stateid.
fn status((world, session): (&World, &mut Session), verb: &Verb, stateid: Stateid4) -> Nfsstat4 {
    let say = |call: &mut Encoder| {
        go_to(call, &[b"srv", b"pub", b"file"]);
        (verb.2)(call, stateid);
    };
    perform(world, 2, session, 5, say).0
}

fn ready(world: &World, name: &[u8]) -> Session {
    let session = Session::of(world, 2, name);
    session.call_back(world);
    session
}

#[test]
fn deny_modes_apply_to_a_caller_without_an_open() {
    for (deny, right) in [(share::READ, Right::Read), (share::WRITE, Right::Write)] {
        let world = World::new();
        let (mut one, mut other) = (ready(&world, b"one"), ready(&world, b"other"));
        open(&world, &mut one, share::READ, deny);
        for verb in &VERBS {
            let expected = if verb.1 == right { Nfsstat4::Locked } else { Nfsstat4::Ok };
            let found = status((&world, &mut other), verb, Stateid4::ANONYMOUS);
            assert_eq!(found, expected, "{} where {deny} is denied", verb.0);
        }
    }
}

#[test]
fn an_open_for_reading_changes_no_space() {
    let world = World::new();
    let mut one = ready(&world, b"one");
    let stateid = open(&world, &mut one, share::READ, 0);
    for verb in &VERBS {
        let expected = if verb.1 == Right::Write { Nfsstat4::OpenMode } else { Nfsstat4::Ok };
        assert_eq!(status((&world, &mut one), verb, stateid), expected, "{}", verb.0);
    }
    let unknown = Stateid4 { other: [0x55; 12], ..stateid };
    for verb in &VERBS {
        assert_eq!(status((&world, &mut one), verb, unknown), Nfsstat4::BadStateid, "{}", verb.0);
    }
}

#[test]
fn an_open_for_writing_may_io_advise_although_others_deny_reading() {
    let world = World::new();
    let (mut one, mut other) = (ready(&world, b"one"), ready(&world, b"other"));
    let stateid = open(&world, &mut one, share::WRITE, 0);
    open(&world, &mut other, share::WRITE, share::READ);
    for verb in &VERBS {
        let expected = if verb.1 == Right::Read { Nfsstat4::Locked } else { Nfsstat4::Ok };
        assert_eq!(status((&world, &mut one), verb, stateid), expected, "{}", verb.0);
    }
}

#[test]
fn space_cannot_be_changed_on_a_read_only_export() {
    let fs = memory();
    furnish(&*fs);
    let ids = Ids { squash: Squash::None, ..Ids::default() };
    let rules = Rules { read_only: true, ids, ..Rules::default() };
    let clients = vec![(Client::Everybody, Arc::new(rules))];
    let export = Export::new(ExportId(1), PathBuf::from("/srv/pub"), fs, clients);
    let world = World::of(Plan::new(HandleKey::new([7; 16]), vec![Arc::new(export)]));
    let mut one = ready(&world, b"one");
    for verb in &VERBS {
        let expected = if verb.1 == Right::Write { Nfsstat4::RoFs } else { Nfsstat4::Ok };
        let found = status((&world, &mut one), verb, Stateid4::ANONYMOUS);
        assert_eq!(found, expected, "{}", verb.0);
    }
}
