//! A delegation is recalled only for callers that have the right to what they ask for.

use comity_proto::nfs4::{
    Bitmap4, Component4, Fattr4, Nfsstat4, Open4args, OpenClaim4, Openflag4, Range4args, Read4args,
    Rename4args, Setattr4args, Setxattr4args, SetxattrOption4, StableHow4, StateOwner4, Stateid4,
    Write4args, attribute, operation as op, share,
};
use comity_state::Effect;
use comity_xdr::{Encode, Encoder, Opaque};

use crate::callbacks::{go_to, perform};
use crate::session::Session;
use crate::world::{World, encoded};

const FILE: [&[u8]; 3] = [b"srv", b"pub", b"file"];
const STRANGER: u32 = 1001;

/// A file of root with the mode 0600, which is delegated to one client for writing, and the session
/// of another client.
fn delegated() -> (World, Session) {
    let world = World::new();
    let mut holder = Session::of(&world, 2, b"holder");
    holder.call_back(&world);
    world.act_as(0, 0, &[]);
    let mode = (attribute::MODE, 0o600_u32);
    assert_eq!(ask(&world, &mut holder, &FILE, (op::SETATTR, &setting(mode))), Nfsstat4::Ok);
    let owner = StateOwner4 { clientid: 0, owner: Opaque(b"process") };
    let (openhow, claim) = (Openflag4::NoCreate, OpenClaim4::Null(Opaque(b"file")));
    let (seqid, share_access, share_deny) = (0, share::BOTH, 0);
    let open = Open4args { seqid, share_access, share_deny, owner, openhow, claim };
    assert_eq!(ask(&world, &mut holder, &FILE[..2], (op::OPEN, &open)), Nfsstat4::Ok);
    assert!(world.engine.has_delegations());
    let other = Session::of(&world, 2, b"other");
    other.call_back(&world);
    (world, other)
}

fn ask(
    world: &World,
    session: &mut Session,
    path: &[&[u8]],
    (number, arguments): (u32, &impl Encode),
) -> Nfsstat4 {
    let arguments = encoded(arguments);
    let say = |call: &mut Encoder| {
        go_to(call, path);
        call.value(&number);
        call.raw(&arguments);
    };
    perform(world, 2, session, path.len() as u32 + 2, say).0
}

fn setting((number, value): (u32, impl Encode)) -> impl Encode {
    let (stateid, attrmask) = (Stateid4::ANONYMOUS, Bitmap4::of(&[number]));
    let value: &'static [u8] = encoded(&value).leak();
    Setattr4args { stateid, obj_attributes: Fattr4 { attrmask, attr_vals: Opaque(value) } }
}

/// Performs reads, writes and changes of the file. Returns for each its operation, its status, and
/// the status expected for a user without rights.
fn asked(mut ask: impl FnMut(u32, Vec<u8>) -> Nfsstat4) -> Vec<(u32, Nfsstat4, Nfsstat4)> {
    let stateid = Stateid4::ANONYMOUS;
    let read = Read4args { stateid, offset: 0, count: 5 };
    let (stable, data) = (StableHow4::Unstable, Opaque(&b"evil"[..]));
    let write = Write4args { stateid, offset: 0, stable, data };
    let range = Range4args { stateid, offset: 0, length: 5 };
    let (option, key, value) = (SetxattrOption4::Either, Opaque(&b"k"[..]), Opaque(&b"v"[..]));
    let (access, perm) = (Nfsstat4::Access, Nfsstat4::Perm);
    [
        (op::READ, encoded(&read), access),
        (op::READ_PLUS, encoded(&read), access),
        (op::WRITE, encoded(&write), access),
        (op::ALLOCATE, encoded(&range), access),
        (op::DEALLOCATE, encoded(&range), access),
        (op::SETATTR, encoded(&setting((attribute::SIZE, 0_u64))), access),
        (op::SETATTR, encoded(&setting((attribute::MODE, 0o666_u32))), perm),
        (op::SETXATTR, encoded(&Setxattr4args { option, key, value }), access),
    ]
    .into_iter()
    .map(|(number, arguments, expected)| (number, ask(number, arguments), expected))
    .collect()
}

/// Encoded arguments.
struct Raw(Vec<u8>);

impl Encode for Raw {
    fn encode(&self, encoder: &mut Encoder) {
        encoder.raw(&self.0);
    }
}

/// Returns the number of delegations that the engine wants to recall.
fn recalls(world: &World) -> usize {
    let effects = std::iter::from_fn(|| world.engine.poll_effect());
    effects.filter(|effect| matches!(effect, Effect::Recall { .. })).count()
}

#[test]
fn a_caller_without_rights_to_a_file_recalls_no_delegation_of_it() {
    let (world, mut other) = delegated();
    world.act_as(STRANGER, STRANGER, &[]);
    let answers =
        asked(|number, arguments| ask(&world, &mut other, &FILE, (number, &Raw(arguments))));
    for (number, answer, expected) in answers {
        assert_eq!(answer, expected, "operation {number}");
    }
    let remove: Component4<'_> = Opaque(b"file");
    let removed = ask(&world, &mut other, &FILE[..2], (op::REMOVE, &remove));
    assert_eq!(removed, Nfsstat4::Access);
    let rename = Rename4args { oldname: Opaque(b"file"), newname: Opaque(b"other") };
    let say = |call: &mut Encoder| {
        go_to(call, &FILE[..2]);
        call.value(&op::SAVEFH);
        call.value(&op::RENAME);
        call.value(&rename);
    };
    assert_eq!(perform(&world, 2, &mut other, 5, say).0, Nfsstat4::Access);
    assert_eq!(recalls(&world), 0);
}

#[test]
fn a_caller_with_rights_to_a_file_recalls_a_delegation_of_it() {
    let (world, mut other) = delegated();
    world.act_as(0, 0, &[]);
    let answers =
        asked(|number, arguments| ask(&world, &mut other, &FILE, (number, &Raw(arguments))));
    for (number, answer, _) in answers {
        assert_eq!(answer, Nfsstat4::Delay, "operation {number}");
    }
    assert_eq!(recalls(&world), 1);
}
