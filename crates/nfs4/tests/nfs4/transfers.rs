//! READ within the limits of a session.

use comity_export::{Client, HandleKey, Plan};
use comity_proto::nfs4::{CompoundHead, DATA_BYTES_MAX, Read4args, Stateid4, operation as op};
use comity_vfs::{Cred, Gid, Name, Uid};
use comity_xdr::{Encoder, Opaque};

use crate::session::Session;
use crate::world::{World, export, furnish, memory};

/// The bytes of a reply other than data: the header of RPC; status, tag and count; SEQUENCE;
/// PUTROOTFH and two LOOKUPs; READ before its data.
const OVERHEAD_BYTES: u32 = 24 + 12 + 44 + 3 * 8 + 16;

fn with_a_megabyte() -> World {
    let fs = memory();
    furnish(&*fs);
    let server = Cred::new(Uid::new(0), Gid::new(0));
    let file = fs.lookup(&server, &fs.root(), Name::new(b"file").unwrap()).unwrap().node.handle;
    fs.write(&server, &file, 0, &vec![7; DATA_BYTES_MAX as usize]).unwrap();
    World::of(Plan::new(HandleKey::new([7; 16]), vec![export(1, "/pub", &fs, Client::Everybody)]))
}

/// The number of bytes that the largest READ returns in a session with this limit.
fn read(maxresponsesize: u32) -> u32 {
    let world = with_a_megabyte();
    let mut session = Session::open_for(&world, 1, maxresponsesize);
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion: 1, operations: 5 });
    session.sequence(&mut call);
    call.value(&op::PUTROOTFH);
    for name in [&b"pub"[..], b"file"] {
        call.value(&op::LOOKUP);
        call.opaque(name);
    }
    call.value(&op::READ);
    call.value(&Read4args { stateid: Stateid4::ANONYMOUS, offset: 0, count: DATA_BYTES_MAX });
    let reply = world.compound(call.bytes()).0;
    assert!(
        reply.len() as u32 + 24 <= maxresponsesize,
        "the reply is longer than the limit of the session"
    );
    reply.len() as u32 + 24 - OVERHEAD_BYTES
}

#[test]
fn a_read_of_the_largest_size_fits_into_a_session_made_for_it() {
    assert_eq!(read(OVERHEAD_BYTES + DATA_BYTES_MAX), DATA_BYTES_MAX);
}

#[test]
fn a_read_is_cut_down_to_the_limit_of_the_session() {
    assert_eq!(read(OVERHEAD_BYTES + 8192), 8192);
}
