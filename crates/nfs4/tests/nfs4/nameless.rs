//! Calls of 4.0 do not say which client makes them unless they have a stateid or a clientid: they
//! recall conflicting delegations of any holder.

use comity_proto::nfs4::{
    Bitmap4, Component4, CompoundResultHead, Fattr4, Nfsstat4, Open4args, Open4resok, OpenClaim4,
    OpenConfirm4args, OpenDelegation4, Openflag4, Rename4args, Setattr4args, StateOwner4, Stateid4,
    attribute, operation as op, share,
};
use comity_state::ClientId;
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::callbacks::go_to;
use crate::owners::{call, introduce};
use crate::world::World;

const DIRECTORY: [&[u8]; 2] = [b"srv", b"pub"];
const FILE: [&[u8]; 3] = [b"srv", b"pub", b"file"];

/// A client on the only connection; it has the file open and holds a write delegation of it.
struct Holder {
    world: World,
    clientid: u64,
    opened: Stateid4,
    delegated: Stateid4,
}

impl Holder {
    fn new() -> Self {
        let world = World::new();
        let clientid = introduce(&world);
        let client = world.engine.client_by_id(ClientId(clientid)).unwrap();
        world.engine.callbacks_work(&client);
        let (first, _) = open(&world, clientid, 1);
        let (status, _) = does(&world, 5, |call| {
            go_to(call, &FILE);
            call.value(&op::OPEN_CONFIRM);
            call.value(&OpenConfirm4args { open_stateid: first, seqid: 2 });
        });
        assert_eq!(status, Nfsstat4::Ok);
        let (opened, delegated) = open(&world, clientid, 3);
        Self {
            world,
            clientid,
            opened,
            delegated: delegated.expect("no other client has the file"),
        }
    }

    /// The status of a call that first looks up these names.
    fn status(&self, names: &[&[u8]], operations: u32, say: impl FnOnce(&mut Encoder)) -> Nfsstat4 {
        let operations = 1 + names.len() as u32 + operations;
        does(&self.world, operations, |call| {
            go_to(call, names);
            say(call);
        })
        .0
    }

    fn set(&self, stateid: Stateid4, attributes: &Fattr4<'_>) -> Nfsstat4 {
        self.status(&FILE, 1, |call| {
            call.value(&op::SETATTR);
            let obj_attributes = *attributes;
            call.value(&Setattr4args { stateid, obj_attributes });
        })
    }

    /// Returns the delegation, as a client does after a recall.
    fn gives_back(&self) {
        let status = self.status(&FILE, 1, |call| {
            call.value(&op::DELEGRETURN);
            call.value(&self.delegated);
        });
        assert_eq!(status, Nfsstat4::Ok);
    }

    fn is_recalled(&self) -> bool {
        let client = self.world.engine.client_by_id(ClientId(self.clientid)).unwrap();
        !self.world.engine.recalls(&client).is_empty()
    }
}

/// Sends a COMPOUND of this number of operations; returns its status and the results.
fn does(world: &World, operations: u32, say: impl FnOnce(&mut Encoder)) -> (Nfsstat4, Vec<u8>) {
    let told = call(world, operations, say);
    let mut told = Decoder::new(&told);
    let status = told.value::<CompoundResultHead<'_>>().unwrap().status;
    (status, told.rest().to_vec())
}

/// Opens the file for reading and writing; returns the stateids of the open and of the delegation.
fn open(world: &World, clientid: u64, seqid: u32) -> (Stateid4, Option<Stateid4>) {
    let (status, told) = does(world, 4, |call| {
        go_to(call, &DIRECTORY);
        call.value(&op::OPEN);
        call.value(&Open4args {
            seqid,
            share_access: share::BOTH,
            share_deny: 0,
            owner: StateOwner4 { clientid, owner: Opaque(b"process") },
            openhow: Openflag4::NoCreate,
            claim: OpenClaim4::Null(Opaque(b"file")),
        });
    });
    assert_eq!(status, Nfsstat4::Ok);
    let opened: Open4resok<'_> = Decoder::new(&told[4 * 8..]).value().unwrap();
    let delegated = match opened.delegation {
        OpenDelegation4::Write(delegation) => Some(delegation.stateid),
        _ => None,
    };
    (opened.stateid, delegated)
}

/// A change of names that conflicts with a delegation of the file: its description, the number of
/// its operations after those that look up the directory, and the operations.
type Naming = (&'static str, u32, fn(&mut Encoder));

fn name(call: &mut Encoder, name: &[u8]) {
    call.value::<Component4<'_>>(&Opaque(name));
}

const NAMINGS: [Naming; 4] = [
    ("REMOVE", 1, |call| {
        call.value(&op::REMOVE);
        name(call, b"file");
    }),
    ("RENAME", 2, |call| {
        call.value(&op::SAVEFH);
        call.value(&op::RENAME);
        call.value(&Rename4args { oldname: Opaque(b"file"), newname: Opaque(b"elsewhere") });
    }),
    ("RENAME over it", 2, |call| {
        call.value(&op::SAVEFH);
        call.value(&op::RENAME);
        call.value(&Rename4args { oldname: Opaque(b"link"), newname: Opaque(b"file") });
    }),
    ("LINK", 6, |call| {
        call.value(&op::LOOKUP);
        name(call, b"file");
        call.value(&op::SAVEFH);
        go_to(call, &DIRECTORY);
        call.value(&op::LINK);
        name(call, b"second");
    }),
];

#[test]
fn a_change_of_names_recalls_a_delegation_of_its_own_client() {
    for (what, operations, say) in NAMINGS {
        let holder = Holder::new();
        assert_eq!(holder.status(&DIRECTORY, operations, say), Nfsstat4::Delay, "{what}");
        assert!(holder.is_recalled(), "{what}");
        holder.gives_back();
        assert_eq!(holder.status(&DIRECTORY, operations, say), Nfsstat4::Ok, "{what}");
    }
}

#[test]
fn a_change_of_attributes_with_a_stateid_recalls_nothing_of_its_own_client() {
    let mode = 0o600_u32.to_be_bytes();
    let size = 5_u64.to_be_bytes();
    let of = |number, value| Fattr4 { attrmask: Bitmap4::of(&[number]), attr_vals: Opaque(value) };
    let (mode, size) = (of(attribute::MODE, &mode), of(attribute::SIZE, &size));
    for attributes in [mode, size] {
        let holder = Holder::new();
        for stateid in [holder.opened, holder.delegated] {
            assert_eq!(holder.set(stateid, &attributes), Nfsstat4::Ok);
        }
        assert!(!holder.is_recalled());
        assert_eq!(holder.set(Stateid4::ANONYMOUS, &attributes), Nfsstat4::Delay);
        assert!(holder.is_recalled());
        holder.gives_back();
    }
}

#[test]
fn an_unknown_stateid_does_not_prevent_a_recall() {
    let holder = Holder::new();
    let mode = 0o600_u32.to_be_bytes();
    let attributes = Fattr4 { attrmask: Bitmap4::of(&[attribute::MODE]), attr_vals: Opaque(&mode) };
    let other = std::array::from_fn(|at| holder.delegated.other[at] ^ 0x55);
    let forged = Stateid4 { other, ..holder.delegated };
    assert_eq!(holder.set(forged, &attributes), Nfsstat4::Delay);
}

#[test]
fn getattr_over_the_writers_connection_does_not_ask_the_writer() {
    let holder = Holder::new();
    let status = holder.status(&FILE, 1, |call| {
        call.value(&op::GETATTR);
        call.value(&Bitmap4::of(&[attribute::SIZE]));
    });
    assert_eq!(status, Nfsstat4::Ok, "the writer is asked");
    assert!(!holder.is_recalled());
}
