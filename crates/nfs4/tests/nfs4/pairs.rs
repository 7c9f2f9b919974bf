//! COPY between two files: the ranges that it copies, and the pairs of files that it accepts.

use comity_export::{Client, HandleKey, Plan};
use comity_proto::nfs4::{Copy4args, Copy4resok, Netloc4, Nfsstat4, Stateid4, operation as op};
use comity_vfs::{Create, Cred, Gid, Mode, Name, SetAttr, Uid};
use comity_xdr::{Counted, Decoder, Opaque};

use crate::callbacks::{client, go_to, perform};
use crate::session::Session;
use crate::world::{World, export, furnish, memory};

/// The length of the source file.
const LENGTH: u64 = 12;

const FILE: [&[u8]; 3] = [b"srv", b"pub", b"file"];
const TWIN: [&[u8]; 3] = [b"srv", b"pub", b"twin"];
const ELSEWHERE: [&[u8]; 3] = [b"srv", b"other", b"file"];

/// A server with two files in an export and one in another.
fn ground() -> (World, Session) {
    let (here, other) = (memory(), memory());
    furnish(&*here);
    furnish(&*other);
    let (server, how) = (Cred::new(Uid::new(0), Gid::new(0)), Mode::new(0o644));
    let how = Create::Guarded(SetAttr { mode: Some(how), ..SetAttr::default() });
    here.create(&server, &here.root(), Name::new(b"twin").unwrap(), &how).unwrap();
    let exports = vec![
        export(1, "/srv/pub", &here, Client::Everybody),
        export(2, "/srv/other", &other, Client::Everybody),
    ];
    let world = World::of(Plan::new(HandleKey::new([7; 16]), exports));
    let session = client(&world, 2, b"copier");
    (world, session)
}

/// The arguments of a COPY of `count` bytes from one offset to another.
fn copy((from, to, count): (u64, u64, u64)) -> Copy4args<'static> {
    Copy4args {
        src_stateid: Stateid4::ANONYMOUS,
        dst_stateid: Stateid4::ANONYMOUS,
        src_offset: from,
        dst_offset: to,
        count,
        consecutive: true,
        synchronous: true,
        source_server: Counted(Vec::new()),
    }
}

/// Sends a COPY; returns the number of bytes that were copied.
fn done(
    (world, session): &mut (World, Session),
    (from, to): ([&[u8]; 3], [&[u8]; 3]),
    args: &Copy4args<'_>,
) -> Result<u64, Nfsstat4> {
    let (status, told) = perform(world, 2, session, 10, |call| {
        go_to(call, &from);
        call.value(&op::SAVEFH);
        go_to(call, &to);
        call.value(&op::COPY);
        call.value(args);
    });
    if status != Nfsstat4::Ok {
        return Err(status);
    }
    let told: Copy4resok = Decoder::new(&told[4 * 20..]).value().unwrap();
    Ok(told.response.count)
}

#[test]
fn a_copy_ends_at_the_end_of_the_source_and_beyond_it_is_refused() {
    let mut ground = ground();
    for (from, to, count, copied) in
        [(0, 0, 0, LENGTH), (5, 100, 3, 3), (7, 0, 5, 5), (12, 0, 0, 0)]
    {
        assert_eq!(done(&mut ground, (FILE, TWIN), &copy((from, to, count))), Ok(copied));
    }
    for what in [(0, 0, LENGTH + 1), (12, 0, 1), (13, 0, 0), (1, 0, u64::MAX), (u64::MAX, 0, 1)] {
        let found = done(&mut ground, (FILE, TWIN), &copy(what));
        assert_eq!(found, Err(Nfsstat4::Inval), "{what:?}");
    }
}

#[test]
fn a_copy_between_two_exports_is_left_to_the_client() {
    let found = done(&mut ground(), (FILE, ELSEWHERE), &copy((0, 0, 0)));
    assert_eq!(found, Err(Nfsstat4::XDev));
}

#[test]
fn a_copy_from_another_server_is_left_to_the_client() {
    let source_server = Counted(vec![Netloc4::Name(Opaque(b"source.example"))]);
    let args = Copy4args { source_server, ..copy((0, 0, 0)) };
    assert_eq!(done(&mut ground(), (FILE, TWIN), &args), Err(Nfsstat4::OffloadDenied));
}
