//! The user that opened a file can read and write it after its mode changes; other users cannot.

use comity_proto::nfs4::{
    Bitmap4, Component4, Createhow4, Fattr4, Nfsstat4, Open4args, Open4resok, OpenClaim4,
    OpenDelegation4, Openflag4, Read4args, Setattr4args, StableHow4, StateOwner4, Stateid4,
    Write4args, attribute, operation as op, share,
};
use comity_xdr::{Decoder, Encoder, Opaque};

use crate::callbacks::{go_to, perform};
use crate::session::Session;
use crate::world::World;

const ROOT: u32 = 0;
const OPENER: u32 = 1000;
const OTHER: u32 = 1001;
const FILE: [&[u8]; 3] = [b"srv", b"pub", b"file"];

/// A client with many users that act in turn.
struct Machine {
    world: World,
    session: Session,
    /// The open-owner.
    process: &'static [u8],
    /// The supplementary groups that the user claims.
    groups: &'static [u32],
}

impl Machine {
    fn new() -> Self {
        let world = World::new();
        let session = Session::of(&world, 2, b"machine");
        session.call_back(&world);
        Self { world, session, process: b"process", groups: &[] }
    }

    fn perform(
        &mut self,
        user: u32,
        operations: u32,
        say: impl FnOnce(&mut Encoder),
    ) -> (Nfsstat4, Vec<u8>) {
        self.world.act_as(user, user, self.groups);
        perform(&self.world, 2, &mut self.session, operations, say)
    }

    /// Opens a name without asking for a delegation; returns the stateid.
    fn open(
        &mut self,
        user: u32,
        access: u32,
        named: (Component4<'_>, Openflag4<'_>),
    ) -> Result<Stateid4, Nfsstat4> {
        let (access, claim) = (access | share::WANT_NO_DELEG, OpenClaim4::Null(named.0));
        let opened = self.say_open(user, access, (claim, named.1))?;
        Ok(Decoder::new(&opened).value::<Open4resok<'_>>().unwrap().stateid)
    }

    /// Sends OPEN of a name in the folder; returns its results.
    fn say_open(
        &mut self,
        user: u32,
        share_access: u32,
        (claim, openhow): (OpenClaim4<'_>, Openflag4<'_>),
    ) -> Result<Vec<u8>, Nfsstat4> {
        let owner = StateOwner4 { clientid: 0, owner: Opaque(self.process) };
        let (status, mut told) = self.perform(user, 4, |call| {
            go_to(call, &FILE[..2]);
            call.value(&op::OPEN);
            call.value(&Open4args { seqid: 0, share_access, share_deny: 0, owner, openhow, claim });
        });
        if status == Nfsstat4::Ok { Ok(told.split_off(4 * 8)) } else { Err(status) }
    }

    /// Opens the file, which must be delegated; returns the stateid of the delegation.
    fn delegate(&mut self, user: u32, access: u32) -> Stateid4 {
        let file = OpenClaim4::Null(Opaque(b"file"));
        let opened = self.say_open(user, access, (file, Openflag4::NoCreate)).unwrap();
        match Decoder::new(&opened).value::<Open4resok<'_>>().unwrap().delegation {
            OpenDelegation4::Read(it) => it.stateid,
            OpenDelegation4::Write(it) => it.stateid,
            none => panic!("{none:?}"),
        }
    }

    fn open_file(&mut self, user: u32, access: u32) -> Stateid4 {
        self.open(user, access, (Opaque(b"file"), Openflag4::NoCreate)).unwrap()
    }

    /// Root changes the mode of the file.
    fn set_mode(&mut self, mode: u32) {
        self.set(&FILE, (attribute::MODE, &mode.to_be_bytes()));
    }

    /// Root sets an attribute of an object.
    fn set(&mut self, path: &[&[u8]], (number, value): (u32, &[u8])) {
        let (stateid, attrmask) = (Stateid4::ANONYMOUS, Bitmap4::of(&[number]));
        let (status, _) = self.perform(ROOT, path.len() as u32 + 2, |call| {
            go_to(call, path);
            call.value(&op::SETATTR);
            let obj_attributes = Fattr4 { attrmask, attr_vals: Opaque(value) };
            call.value(&Setattr4args { stateid, obj_attributes });
        });
        assert_eq!(status, Nfsstat4::Ok);
    }

    /// The statuses of READ and READ_PLUS.
    fn reads(&mut self, user: u32, stateid: Stateid4) -> [Nfsstat4; 2] {
        self.reads_of(&FILE, user, stateid)
    }

    fn reads_of(&mut self, path: &[&[u8]], user: u32, stateid: Stateid4) -> [Nfsstat4; 2] {
        [op::READ, op::READ_PLUS].map(|operation| {
            let read = |call: &mut Encoder| {
                go_to(call, path);
                call.value(&operation);
                call.value(&Read4args { stateid, offset: 0, count: 5 });
            };
            self.perform(user, 5, read).0
        })
    }

    /// The status of WRITE.
    fn writes(&mut self, user: u32, stateid: Stateid4) -> Nfsstat4 {
        let (stable, data) = (StableHow4::Unstable, Opaque(&b"more"[..]));
        let write = |call: &mut Encoder| {
            go_to(call, &FILE);
            call.value(&op::WRITE);
            call.value(&Write4args { stateid, offset: 0, stable, data });
        };
        self.perform(user, 5, write).0
    }
}

#[test]
fn only_the_opener_of_a_file_can_still_write_it() {
    let mut machine = Machine::new();
    machine.set_mode(0o666);
    let stateid = machine.open_file(OPENER, share::WRITE);
    assert_eq!(machine.writes(OTHER, stateid), Nfsstat4::Ok);
    machine.set_mode(0o600);
    assert_eq!(machine.writes(OPENER, stateid), Nfsstat4::Ok);
    assert_eq!(machine.writes(OTHER, stateid), Nfsstat4::Access);
    assert_eq!(machine.writes(OPENER, Stateid4::ANONYMOUS), Nfsstat4::Access);
    machine.set_mode(0o644);
    let stateid = machine.open_file(OPENER, share::READ);
    assert_eq!(machine.writes(OPENER, stateid), Nfsstat4::Ok, "both use one open");
    machine.process = b"another";
    let stateid = machine.open_file(OPENER, share::READ);
    assert_eq!(machine.writes(OPENER, stateid), Nfsstat4::OpenMode);
}

#[test]
fn only_the_opener_of_a_file_can_still_read_it() {
    let mut machine = Machine::new();
    let stateid = machine.open_file(OPENER, share::READ);
    assert_eq!(machine.reads(OTHER, stateid), [Nfsstat4::Ok; 2]);
    machine.set_mode(0o600);
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Ok; 2]);
    assert_eq!(machine.reads(OTHER, stateid), [Nfsstat4::Access; 2]);
    assert_eq!(machine.reads(OPENER, Stateid4::ANONYMOUS), [Nfsstat4::Access; 2]);
    let again = machine.open(OPENER, share::READ, (Opaque(b"file"), Openflag4::NoCreate));
    assert_eq!(again, Err(Nfsstat4::Access));
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Ok; 2]);
}

#[test]
fn an_open_for_writing_does_not_allow_reading() {
    let mut machine = Machine::new();
    machine.set_mode(0o622);
    let stateid = machine.open_file(OPENER, share::WRITE);
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Access; 2]);
    machine.set_mode(0o666);
    let stateid = machine.open_file(OPENER, share::READ);
    machine.set_mode(0o600);
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Ok; 2]);
}

#[test]
fn each_of_two_users_that_share_an_open_is_checked() {
    let mut machine = Machine::new();
    machine.open_file(OPENER, share::READ);
    let stateid = machine.open_file(OTHER, share::READ);
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Ok; 2]);
    machine.set_mode(0o600);
    for user in [OPENER, OTHER] {
        assert_eq!(machine.reads(user, stateid), [Nfsstat4::Access; 2]);
    }
    let stateid = machine.open_file(ROOT, share::READ);
    assert_eq!(machine.reads(ROOT, stateid), [Nfsstat4::Ok; 2]);
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Access; 2]);
}

/// Many users may be mapped or squashed to one id, and each may have other groups.
#[test]
fn the_same_user_with_other_groups_is_checked_again() {
    let mut machine = Machine::new();
    machine.set_mode(0o660);
    machine.groups = &[0];
    let stateid = machine.open_file(OPENER, share::BOTH);
    machine.groups = &[];
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Access; 2]);
    assert_eq!(machine.writes(OPENER, stateid), Nfsstat4::Access);
    machine.set_mode(0o600);
    machine.groups = &[0];
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Ok; 2]);
    assert_eq!(machine.writes(OPENER, stateid), Nfsstat4::Ok);
}

/// A client with a delegation opens the file for its users without a call to the server.
#[test]
fn only_the_holder_of_a_delegation_can_still_read_and_write() {
    let mut machine = Machine::new();
    let stateid = machine.delegate(OPENER, share::READ);
    assert_eq!(machine.reads(OTHER, stateid), [Nfsstat4::Ok; 2]);
    machine.set_mode(0o600);
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Ok; 2]);
    assert_eq!(machine.reads(OTHER, stateid), [Nfsstat4::Access; 2]);
    assert_eq!(machine.writes(OPENER, stateid), Nfsstat4::OpenMode);

    let mut machine = Machine::new();
    machine.set_mode(0o666);
    let stateid = machine.delegate(OPENER, share::BOTH);
    machine.set_mode(0o600);
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Ok; 2]);
    assert_eq!(machine.writes(OPENER, stateid), Nfsstat4::Ok);
    assert_eq!(machine.writes(OTHER, stateid), Nfsstat4::Access);
}

/// A delegation for writing is also one for reading, but the rights of a user that opened the file
/// for one access were checked for that access only.
#[test]
fn the_holder_of_a_write_delegation_opened_for_writing_may_not_read() {
    let mut machine = Machine::new();
    machine.set_mode(0o622);
    let stateid = machine.delegate(OPENER, share::WRITE);
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Access; 2]);
    assert_eq!(machine.writes(OPENER, stateid), Nfsstat4::Ok);
}

/// When a delegation is recalled, its client reports to the server the opens of its users.
#[test]
fn only_the_holder_of_a_delegation_can_open_the_file_when_it_ends() {
    let mut machine = Machine::new();
    let delegate_stateid = machine.delegate(OPENER, share::READ);
    machine.set_mode(0o600);
    let mut claim = |user, access| {
        let file = Opaque(&b"file"[..]);
        let claim = OpenClaim4::DelegateCur { delegate_stateid, file };
        let opened = machine.say_open(user, access, (claim, Openflag4::NoCreate))?;
        let stateid = Decoder::new(&opened).value::<Open4resok<'_>>().unwrap().stateid;
        Ok((stateid, machine.reads(user, stateid)))
    };
    assert!(matches!(claim(OPENER, share::READ), Ok((_, [Nfsstat4::Ok, Nfsstat4::Ok]))));
    assert_eq!(claim(OTHER, share::READ), Err(Nfsstat4::Access));
    assert_eq!(claim(OPENER, share::WRITE), Err(Nfsstat4::Access));
}

#[test]
fn the_opener_of_a_file_with_holes_can_still_read_it() {
    let mut machine = Machine::new();
    machine.set(&FILE, (attribute::SIZE, &(1u64 << 20).to_be_bytes()));
    let stateid = machine.open_file(OPENER, share::READ);
    machine.set_mode(0o600);
    assert_eq!(machine.reads(OPENER, stateid), [Nfsstat4::Ok; 2]);
    assert_eq!(machine.reads(OTHER, stateid), [Nfsstat4::Access; 2]);
}

const MADE: [&[u8]; 3] = [FILE[0], FILE[1], b"made"];

#[test]
fn the_creator_of_a_file_can_still_read_it_after_it_is_given_away() {
    let mut machine = Machine::new();
    machine.set(&FILE[..2], (attribute::MODE, &0o777u32.to_be_bytes()));
    let exclusive = Openflag4::Create(Createhow4::Exclusive([7; 8]));
    let stateid = machine.open(OPENER, share::BOTH, (Opaque(b"made"), exclusive)).unwrap();
    assert_eq!(machine.reads_of(&MADE, OTHER, stateid), [Nfsstat4::Access; 2]);
    machine.set(&MADE, (attribute::OWNER, b"\0\0\0\x010\0\0\0"));
    assert_eq!(machine.reads_of(&MADE, OPENER, stateid), [Nfsstat4::Ok; 2]);
}

/// The verifier shows that it is the same request, but not which user sends it.
#[test]
fn a_create_with_the_verifier_of_another_users_file_is_checked() {
    let mut machine = Machine::new();
    let exclusive = || (Opaque(&b"made"[..]), Openflag4::Create(Createhow4::Exclusive([7; 8])));
    machine.open(ROOT, share::BOTH, exclusive()).unwrap();
    machine.process = b"another";
    let stateid = machine.open(OPENER, share::READ, exclusive()).unwrap();
    assert_eq!(machine.reads_of(&MADE, OPENER, stateid), [Nfsstat4::Access; 2]);
}
