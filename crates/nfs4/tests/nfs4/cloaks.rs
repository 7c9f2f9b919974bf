//! Opens, locks and delegations of cloaked files, and the directories above the exports as each
//! domain sees them.

use std::sync::Arc;
use std::time::Duration;

use comity_export::Plan;
use comity_proto::nfs4::{
    Close4args, CompoundHead, CompoundResultHead, Lock4args, Locker4, Locku4args, NfsFh4,
    NfsLockType4, Nfsace4, Nfsstat4, Open4args, Open4resok, OpenClaim4, OpenDelegation4,
    OpenNoneDelegation4, OpenReadDelegation4, OpenToLockOwner4, OpenWriteDelegation4, Openflag4,
    Read4args, Sequence4resok, StateOwner4, Stateid4, operation as op, share,
};
use comity_vfs::{Fs, Mode, SetAttr, Uid};
use comity_xdr::{Decoder, Encode, Encoder, Opaque};

use crate::hunt::twins::{EXPORT, plan, plan_after, planted, sealed};
use crate::session::Session;
use crate::world::{World, memory};

const OWNER: u32 = 7;
const GUEST: u32 = 1;

/// A file of one owner that all users may write.
struct SharedFile {
    fs: Arc<dyn Fs>,
    dir: Vec<u8>,
    file: Vec<u8>,
}

impl SharedFile {
    fn new() -> Self {
        let fs = memory();
        let set = SetAttr {
            uid: Some(Uid::new(OWNER)),
            mode: Some(Mode::new(0o666)),
            ..SetAttr::default()
        };
        let file = sealed(&planted(&*fs, &fs.root(), "file", 5, &set));
        Self { dir: sealed(&fs.root()), fs, file }
    }

    fn plan(&self, options: &str) -> Plan {
        plan(&self.fs, &format!("rw,insecure,fsid={EXPORT}{options}"))
    }

    /// A server of the file, and two clients: that of a guest and that of the owner.
    fn world(&self, options: &str) -> (World, [Session; 2]) {
        let world = World::of(self.plan(options));
        let sessions = [(GUEST, "guest"), (OWNER, "owner")].map(|(uid, name)| {
            world.act_as(uid, uid, &[]);
            let session = Session::of(&world, 1, name.as_bytes());
            session.call_back(&world);
            session
        });
        (world, sessions)
    }
}

/// A user and its client.
struct User<'w> {
    world: &'w World,
    session: Session,
    uid: u32,
}

impl<'w> User<'w> {
    /// The guest and the owner.
    fn both(world: &'w World, [guest, owner]: [Session; 2]) -> [Self; 2] {
        [Self { world, session: guest, uid: GUEST }, Self { world, session: owner, uid: OWNER }]
    }

    /// Does an operation on the object of a handle; returns the status and the results.
    fn ask(&mut self, handle: &[u8], number: u32, arguments: &impl Encode) -> (Nfsstat4, Vec<u8>) {
        self.world.act_as(self.uid, self.uid, &[]);
        let mut call = Encoder::new();
        call.value(&CompoundHead { tag: Opaque(b""), minorversion: 1, operations: 3 });
        self.session.sequence(&mut call);
        call.value(&op::PUTFH);
        call.value::<NfsFh4<'_>>(&Opaque(handle));
        call.value(&number);
        call.value(arguments);
        let (answer, _) = self.world.compound(call.bytes());
        let mut decoder = Decoder::new(&answer);
        let head: CompoundResultHead<'_> = decoder.value().unwrap();
        if head.results < 3 {
            return (head.status, Vec::new());
        }
        decoder.fixed(8).unwrap();
        decoder.value::<Sequence4resok>().unwrap();
        // PUTFH has no body, and the next result begins with its number and status.
        decoder.fixed(16).unwrap();
        (head.status, decoder.rest().to_vec())
    }

    fn is(&mut self, status: Nfsstat4, handle: &[u8], number: u32, arguments: &impl Encode) {
        assert_eq!(self.ask(handle, number, arguments).0, status, "operation {number}");
    }

    /// Opens a file by its handle.
    fn open(&mut self, handle: &[u8], share_access: u32) -> (Stateid4, OpenDelegation4<'static>) {
        let (status, body) = self.ask(handle, op::OPEN, &open(share_access, OpenClaim4::Fh));
        assert_eq!(status, Nfsstat4::Ok);
        let opened: Open4resok<'_> = Decoder::whole(&body).unwrap();
        let delegation = match opened.delegation {
            OpenDelegation4::Read(it) => OpenDelegation4::Read(OpenReadDelegation4 {
                permissions: Nfsace4 { who: Opaque(b""), ..it.permissions },
                ..it
            }),
            OpenDelegation4::Write(it) => OpenDelegation4::Write(OpenWriteDelegation4 {
                permissions: Nfsace4 { who: Opaque(b""), ..it.permissions },
                ..it
            }),
            OpenDelegation4::NoneExt(why) => OpenDelegation4::NoneExt(why),
            OpenDelegation4::None => OpenDelegation4::None,
        };
        (opened.stateid, delegation)
    }

    /// Locks the beginning of an open file.
    fn lock(&mut self, handle: &[u8], open_stateid: Stateid4) -> Result<Stateid4, Nfsstat4> {
        let (open_seqid, lock_seqid) = (0, 0);
        let lock_owner = StateOwner4 { clientid: 0, owner: Opaque(b"locker") };
        let new = OpenToLockOwner4 { open_seqid, open_stateid, lock_seqid, lock_owner };
        let (locktype, reclaim, offset, length) = (NfsLockType4::Write, false, 0, 10);
        let locker = Locker4::New(new);
        let args = Lock4args { locktype, reclaim, offset, length, locker };
        match self.ask(handle, op::LOCK, &args) {
            (Nfsstat4::Ok, body) => Ok(Decoder::whole(&body).unwrap()),
            (status, _) => Err(status),
        }
    }
}

fn open(share_access: u32, claim: OpenClaim4<'_>) -> Open4args<'_> {
    let owner = StateOwner4 { clientid: 0, owner: Opaque(b"opener") };
    Open4args { seqid: 0, share_access, share_deny: 0, owner, openhow: Openflag4::NoCreate, claim }
}

/// An OPEN that denies everything to others.
fn open_alone(share_access: u32) -> Open4args<'static> {
    Open4args { share_deny: share::BOTH, ..open(share_access, OpenClaim4::Fh) }
}

/// Unlocks the range that [`User::lock`] locks.
fn unlock(lock_stateid: Stateid4) -> Locku4args {
    let locktype = NfsLockType4::Write;
    Locku4args { locktype, seqid: 0, lock_stateid, offset: 0, length: 10 }
}

fn close(open_stateid: Stateid4) -> Close4args {
    Close4args { seqid: 0, open_stateid }
}

/// A client with a delegation would show the file to all its users.
#[test]
fn a_cloaked_file_is_not_delegated_with_no_client_cache() {
    let site = SharedFile::new();
    let given = |options: &str, wish: u32| {
        let (world, [session, _]) = site.world(options);
        let mut guest = User { world: &world, session, uid: GUEST };
        guest.open(&site.file, share::READ | wish).1
    };
    let resource = OpenNoneDelegation4::Resource { server_will_signal: false };
    let covered = ",cloak_uid=7:+007,no_client_cache";
    for wish in [share::WANT_READ_DELEG, share::WANT_ANY_DELEG] {
        assert_eq!(given(covered, wish), OpenDelegation4::NoneExt(resource));
    }
    assert_eq!(given(covered, share::WANT_NO_PREFERENCE), OpenDelegation4::None);
    let not_wanted = OpenDelegation4::NoneExt(OpenNoneDelegation4::NotWanted);
    assert_eq!(given(covered, share::WANT_NO_DELEG), not_wanted);
    for options in ["", ",cloak_uid=7:+007", ",cloak_uid=8:+007,no_client_cache"] {
        let given = given(options, share::WANT_READ_DELEG);
        assert!(matches!(given, OpenDelegation4::Read(_)), "{options}: {given:?}");
    }
}

/// After a file is hidden, neither an old handle nor an old stateid leads to it.
#[test]
fn a_hidden_file_is_stale_but_its_locks_and_opens_can_be_released() {
    let site = SharedFile::new();
    let (world, sessions) = site.world("");
    let [mut guest, mut owner] = User::both(&world, sessions);
    let access = share::BOTH | share::WANT_NO_DELEG;
    let (opened, _) = guest.open(&site.file, access);
    let locked = guest.lock(&site.file, opened).unwrap();
    let read = |stateid| Read4args { stateid, offset: 0, count: 9 };
    guest.is(Nfsstat4::Ok, &site.file, op::READ, &read(opened));
    world.exports.replace(site.plan(",cloak_uid=7:+000"));
    let stale = Nfsstat4::Stale;
    guest.is(stale, &site.file, op::READ, &read(opened));
    guest.is(stale, &site.file, op::GETFH, &());
    guest.is(stale, &site.file, op::OPEN, &open(access, OpenClaim4::Fh));
    assert_eq!(guest.lock(&site.file, opened), Err(stale));
    guest.is(Nfsstat4::BadStateid, &site.dir, op::READ, &read(opened));
    let name = Opaque(&b"file"[..]);
    guest.is(Nfsstat4::NoEnt, &site.dir, op::LOOKUP, &name);
    guest.is(Nfsstat4::NoEnt, &site.dir, op::OPEN, &open(access, OpenClaim4::Null(name)));

    let (own, _) = owner.open(&site.file, access);
    assert_eq!(owner.lock(&site.file, own), Err(Nfsstat4::Denied));
    guest.is(stale, &site.file, op::LOCKU, &unlock(locked));
    assert!(owner.lock(&site.file, own).is_ok(), "the lock of the guest still blocks others");
    owner.is(Nfsstat4::Ok, &site.file, op::CLOSE, &close(own));
    let alone = open_alone(access);
    owner.is(Nfsstat4::ShareDenied, &site.file, op::OPEN, &alone);
    guest.is(stale, &site.file, op::CLOSE, &close(opened));
    owner.is(Nfsstat4::Ok, &site.file, op::OPEN, &alone);
}

#[test]
fn a_delegation_of_a_hidden_file_gives_no_access_and_can_be_returned() {
    let site = SharedFile::new();
    let (world, sessions) = site.world("");
    let [mut guest, mut owner] = User::both(&world, sessions);
    let given = guest.open(&site.file, share::BOTH | share::WANT_WRITE_DELEG).1;
    let OpenDelegation4::Write(OpenWriteDelegation4 { stateid, .. }) = given else {
        panic!("{given:?}")
    };
    world.exports.replace(site.plan(",cloak_uid=7:+000"));
    let read = Read4args { stateid, offset: 0, count: 9 };
    guest.is(Nfsstat4::Stale, &site.file, op::READ, &read);
    let current = OpenClaim4::DelegateCur { delegate_stateid: stateid, file: Opaque(b"file") };
    guest.is(Nfsstat4::NoEnt, &site.dir, op::OPEN, &open(share::BOTH, current));
    let by_handle = OpenClaim4::DelegCurFh(stateid);
    guest.is(Nfsstat4::Stale, &site.file, op::OPEN, &open(share::BOTH, by_handle));
    let owners = open(share::READ | share::WANT_NO_DELEG, OpenClaim4::Fh);
    owner.is(Nfsstat4::Delay, &site.file, op::OPEN, &owners);
    guest.is(Nfsstat4::Stale, &site.file, op::DELEGRETURN, &stateid);
    owner.is(Nfsstat4::Ok, &site.file, op::OPEN, &owners);
}

/// A client that is told that a file has moved has no other call by which it could release its
/// state here.
#[test]
fn state_of_a_file_that_has_moved_is_released_by_calls_that_are_told_so() {
    let site = SharedFile::new();
    let (world, sessions) = site.world("");
    let [mut guest, mut owner] = User::both(&world, sessions);
    let access = share::BOTH | share::WANT_NO_DELEG;
    let (opened, _) = guest.open(&site.file, access);
    let locked = guest.lock(&site.file, opened).unwrap();
    let (own, _) = owner.open(&site.file, access);
    let alone = open_alone(access);

    let reload = |options: &str| {
        let options = format!("rw,insecure,fsid={EXPORT}{options}");
        let plan = plan_after(Some(&world.exports.current()), &site.fs, &options);
        world.exports.replace(plan);
    };
    let (moved, back) = (|| reload(",refer=/x@b"), || reload(""));
    moved();
    guest.is(Nfsstat4::Moved, &site.file, op::LOCKU, &unlock(locked));
    back();
    assert!(owner.lock(&site.file, own).is_ok(), "the lock of the guest still blocks others");
    owner.is(Nfsstat4::Ok, &site.file, op::CLOSE, &close(own));
    owner.is(Nfsstat4::ShareDenied, &site.file, op::OPEN, &alone);
    moved();
    guest.is(Nfsstat4::Moved, &site.file, op::CLOSE, &close(opened));
    back();
    let given = owner.open(&site.file, share::BOTH | share::WANT_WRITE_DELEG).1;
    let OpenDelegation4::Write(OpenWriteDelegation4 { stateid, .. }) = given else {
        panic!("{given:?}")
    };
    let guests = open(share::READ | share::WANT_NO_DELEG, OpenClaim4::Fh);
    guest.is(Nfsstat4::Delay, &site.file, op::OPEN, &guests);
    moved();
    owner.is(Nfsstat4::Moved, &site.file, op::DELEGRETURN, &stateid);
    back();
    guest.is(Nfsstat4::Ok, &site.file, op::OPEN, &guests);
}

/// A client with a delegation of a file shows it to all users of its machine, so after a reload the
/// delegations are recalled.
#[test]
fn all_delegations_of_an_export_are_recalled_together() {
    let site = SharedFile::new();
    let (world, sessions) = site.world("");
    let [mut guest, mut owner] = User::both(&world, sessions);
    for user in [&mut guest, &mut owner] {
        let given = user.open(&site.file, share::READ | share::WANT_READ_DELEG).1;
        assert!(matches!(given, OpenDelegation4::Read(_)), "{given:?}");
    }
    let recalled = || std::iter::from_fn(|| world.engine.poll_effect()).count();
    assert_eq!(recalled(), 0);
    world.engine.recall_export(Duration::from_secs(1), EXPORT + 1);
    assert_eq!(recalled(), 0, "another export's");
    world.engine.recall_export(Duration::from_secs(1), EXPORT);
    assert_eq!(recalled(), 2);
}
