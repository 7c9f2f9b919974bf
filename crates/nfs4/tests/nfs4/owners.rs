//! Owners of 4.0: a repeated request gets its first answer.

use std::sync::Arc;

use comity_export::{Client, HandleKey, Plan};
use comity_proto::nfs4::{
    Bitmap4, CbClient4, ClientOwner4, Component4, CompoundHead, CompoundResultHead, Createhow4,
    Fattr4, Netaddr4, Nfsstat4, Open4args, OpenClaim4, OpenConfirm4args, Openflag4,
    Setclientid4args, SetclientidConfirm4, StateOwner4, Stateid4, operation as op,
};
use comity_state::ClientId;
use comity_vfs::layers::{Faults, Layer, Verb, When};
use comity_vfs::{Fs, Status};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::world::{World, export, furnish, memory};

/// A server whose file system fails at one barrier.
fn failing(at: u64) -> World {
    let fs = memory();
    furnish(&*fs);
    let faults = Faults::new(1).fail(Verb::Commit, Status::NoSpc, When::Once(at));
    let fs: Arc<dyn Fs> = Arc::new(Layer::new(fs, faults));
    World::of(Plan::new(HandleKey::new([7; 16]), vec![export(1, "/pub", &fs, Client::Everybody)]))
}

pub(crate) fn call(world: &World, operations: u32, say: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut call = Encoder::new();
    call.value(&CompoundHead { tag: Opaque(b""), minorversion: 0, operations });
    say(&mut call);
    world.compound(call.bytes()).0
}

/// Introduces a client, which confirms itself; returns its clientid.
pub(crate) fn introduce(world: &World) -> u64 {
    introduce_at(world, b"0.0.0.0.0.0")
}

/// Introduces a client that wants its callbacks at this address; returns its clientid.
fn introduce_at(world: &World, addr: &[u8]) -> u64 {
    let told = call(world, 1, |call| {
        let address = Netaddr4 { netid: Opaque(b"tcp"), addr: Opaque(addr) };
        call.value(&op::SETCLIENTID);
        call.value(&Setclientid4args {
            client: ClientOwner4 { verifier: *b"thislife", id: Opaque(b"owner") },
            callback: CbClient4 { cb_program: 0, cb_location: address },
            callback_ident: 0,
        });
    });
    let mut told = Decoder::new(&told);
    assert_eq!(told.value::<CompoundResultHead<'_>>().unwrap().status, Nfsstat4::Ok);
    let _ = (told.value::<u32>().unwrap(), told.value::<u32>().unwrap());
    let announced: SetclientidConfirm4 = told.value().unwrap();
    call(world, 1, |call| {
        call.value(&op::SETCLIENTID_CONFIRM);
        call.value(&announced);
    });
    announced.clientid
}

/// Makes and opens a file; returns the status.
fn open(world: &World, clientid: u64, seqid: u32, name: &[u8]) -> Nfsstat4 {
    opened(world, clientid, seqid, name).0
}

/// Makes and opens a file; returns the status and the stateid.
fn opened(world: &World, clientid: u64, seqid: u32, name: &[u8]) -> (Nfsstat4, Option<Stateid4>) {
    let told = call(world, 3, |call| {
        call.value(&op::PUTROOTFH);
        call.value(&op::LOOKUP);
        call.value::<Component4<'_>>(&Opaque(b"pub"));
        call.value(&op::OPEN);
        let attrs = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: Opaque(b"") };
        call.value(&Open4args {
            seqid,
            share_access: 1,
            share_deny: 0,
            owner: StateOwner4 { clientid, owner: Opaque(b"process") },
            openhow: Openflag4::Create(Createhow4::Guarded(attrs)),
            claim: OpenClaim4::Null(Opaque(name)),
        });
    });
    let mut told = Decoder::new(&told);
    let status = told.value::<CompoundResultHead<'_>>().unwrap().status;
    let _before: [u32; 6] = std::array::from_fn(|_| told.value().unwrap());
    (status, (status == Nfsstat4::Ok).then(|| told.value().unwrap()))
}

#[test]
fn a_repeated_open_whose_barrier_failed_gets_that_failure_again() {
    let world = failing(1);
    let clientid = introduce(&world);
    assert_eq!(open(&world, clientid, 1, b"new"), Nfsstat4::NoSpc);
    assert_eq!(open(&world, clientid, 1, b"new"), Nfsstat4::NoSpc);
}

#[test]
fn a_repeated_open_gets_its_first_answer() {
    let world = failing(99);
    let clientid = introduce(&world);
    assert_eq!(open(&world, clientid, 1, b"new"), Nfsstat4::Ok);
    assert_eq!(open(&world, clientid, 1, b"new"), Nfsstat4::Ok, "not EXIST: it is the same call");
}

#[test]
fn another_operation_with_the_last_seqid_is_not_a_repetition() {
    let world = failing(99);
    let clientid = introduce(&world);
    let (status, stateid) = opened(&world, clientid, 1, b"new");
    assert_eq!(status, Nfsstat4::Ok);
    let told = call(&world, 4, |call| {
        call.value(&op::PUTROOTFH);
        for name in [&b"pub"[..], b"new"] {
            call.value(&op::LOOKUP);
            call.value::<Component4<'_>>(&Opaque(name));
        }
        call.value(&op::OPEN_CONFIRM);
        call.value(&OpenConfirm4args { open_stateid: stateid.unwrap(), seqid: 1 });
    });
    let status = Decoder::new(&told).value::<CompoundResultHead<'_>>().unwrap().status;
    assert_eq!(status, Nfsstat4::BadSeqid);
}

#[test]
fn a_client_is_called_back_at_the_address_of_its_calls_only() {
    for (said, believed) in [("127.0.0.1.3.1", "127.0.0.1.3.1"), ("192.0.2.9.0.22", "")] {
        let world = failing(99);
        let clientid = introduce_at(&world, said.as_bytes());
        let client = world.engine.client_by_id(ClientId(clientid)).unwrap();
        assert_eq!(&*client.callback_address().unwrap().address, believed.as_bytes());
    }
}
