//! Every procedure of NFSv3, MOUNT and NLM checks the rights of a key: a table has the rights that
//! each needs, and each is called by keys with one right, no right, or all rights but one.

use std::collections::BTreeSet;

use comity_proto::mount::procedure as mnt;
use comity_proto::nfs3::{
    Access3args, Commit3args, Create3args, Createhow3, Diropargs3, Link3args, Mkdir3args,
    Mknod3args, Mknoddata3, Nfsstat3, Read3args, Readdir3args, Readdirplus3args, Rename3args,
    Sattr3, Setattr3args, StableHow, Symlink3args, Write3args, procedure as nfs,
};
use comity_proto::nlm::{
    Nlm4Cancargs, Nlm4Lock, Nlm4Lockargs, Nlm4Notify, Nlm4Share, Nlm4Shareargs, Nlm4Stats,
    Nlm4Testargs, Nlm4Unlockargs, procedure as nlm,
};
use comity_proto::{mount, nfs3, nlm as nlm_program};
use comity_state::{ByteRange, HostLock, LockType, Origin};
use comity_vfs::Handle;
use comity_xdr::Opaque;

use crate::granted::{Furnished, Needs, Verdict, sealed};
use crate::hunt::coverage::{all, not_served};
use crate::world::{BEGUN, World, encoded};

/// A call, the rights that it needs, and its arguments.
struct Row {
    program: u32,
    procedure: u32,
    told: &'static str,
    needs: Needs,
    arguments: fn(&Furnished) -> Vec<u8>,
}

const fn row(
    procedure: u32,
    told: &'static str,
    needs: Needs,
    arguments: fn(&Furnished) -> Vec<u8>,
) -> Row {
    Row { program: nfs3::PROGRAM, procedure, told, needs, arguments }
}

const fn mounting(procedure: u32, needs: Needs, arguments: fn(&Furnished) -> Vec<u8>) -> Row {
    Row { program: mount::PROGRAM, told: "MOUNT", ..row(procedure, "", needs, arguments) }
}

const fn locking(procedure: u32, needs: Needs, arguments: fn(&Furnished) -> Vec<u8>) -> Row {
    Row { program: nlm_program::PROGRAM, told: "NLM", ..row(procedure, "", needs, arguments) }
}

const ROWS: [Row; 57] = [
    row(nfs::NULL, "NULL", Needs::Nothing, |_| Vec::new()),
    row(nfs::GETATTR, "GETATTR", Needs::Any, |at| bare(&at.file)),
    row(nfs::GETATTR, "GETATTR of the directory", Needs::Any, |at| bare(&at.dir)),
    row(nfs::SETATTR, "SETATTR of a mode", Needs::All("a"), |at| {
        setattr(&at.file, Sattr3 { mode: Some(0o600), ..Sattr3::default() })
    }),
    row(nfs::SETATTR, "SETATTR of a size", Needs::All("w"), |at| {
        setattr(&at.file, Sattr3 { size: Some(0), ..Sattr3::default() })
    }),
    row(nfs::SETATTR, "SETATTR of a size and a mode", Needs::All("wa"), |at| {
        setattr(&at.file, Sattr3 { size: Some(0), mode: Some(0o600), ..Sattr3::default() })
    }),
    row(nfs::SETATTR, "SETATTR of a directory", Needs::All("a"), |at| {
        setattr(&at.dir, Sattr3 { mode: Some(0o700), ..Sattr3::default() })
    }),
    row(nfs::LOOKUP, "LOOKUP", Needs::All("x"), |at| named(&at.dir, b"file")),
    row(nfs::LOOKUP, "LOOKUP of .", Needs::All("x"), |at| named(&at.dir, b".")),
    row(nfs::LOOKUP, "LOOKUP of ..", Needs::All("x"), |at| named(&at.sub, b"..")),
    row(nfs::ACCESS, "ACCESS", Needs::Any, |at| {
        encoded(&Access3args { object: Opaque(&sealed(&at.file)), access: 0x3f })
    }),
    row(nfs::READLINK, "READLINK", Needs::Any, |at| bare(&at.link)),
    row(nfs::READ, "READ", Needs::All("r"), |at| {
        encoded(&Read3args { file: Opaque(&sealed(&at.file)), offset: 0, count: 10 })
    }),
    row(nfs::WRITE, "WRITE, stable", Needs::All("w"), |at| write(&at.file, StableHow::FileSync)),
    row(nfs::WRITE, "WRITE, unstable", Needs::All("w"), |at| write(&at.file, StableHow::Unstable)),
    row(nfs::CREATE, "CREATE, guarded", Needs::All("c"), |at| {
        create(&at.dir, b"new", Createhow3::Guarded(Sattr3::default()))
    }),
    row(nfs::CREATE, "CREATE, exclusive", Needs::All("c"), |at| {
        create(&at.dir, b"new", Createhow3::Exclusive([3; 8]))
    }),
    row(nfs::CREATE, "CREATE, unchecked", Needs::All("c"), |at| {
        create(&at.dir, b"new", Createhow3::Unchecked(Sattr3::default()))
    }),
    row(nfs::CREATE, "CREATE, unchecked, of an empty file", Needs::All("c"), |at| {
        let set = Sattr3 { size: Some(0), ..Sattr3::default() };
        create(&at.dir, b"new", Createhow3::Unchecked(set))
    }),
    row(nfs::CREATE, "CREATE, unchecked, which empties a file", Needs::All("cw"), |at| {
        let set = Sattr3 { size: Some(0), ..Sattr3::default() };
        create(&at.dir, b"file", Createhow3::Unchecked(set))
    }),
    row(nfs::MKDIR, "MKDIR", Needs::All("c"), |at| {
        let (dir, attributes) = (sealed(&at.dir), Sattr3::default());
        encoded(&Mkdir3args { place: place(&dir, b"new"), attributes })
    }),
    row(nfs::SYMLINK, "SYMLINK", Needs::All("c"), |at| {
        let (dir, attributes) = (sealed(&at.dir), Sattr3::default());
        encoded(&Symlink3args { place: place(&dir, b"new"), attributes, target: Opaque(b"file") })
    }),
    row(nfs::MKNOD, "MKNOD", Needs::All("c"), |at| {
        let (dir, what) = (sealed(&at.dir), Mknoddata3::Fifo(Sattr3::default()));
        encoded(&Mknod3args { place: place(&dir, b"new"), what })
    }),
    row(nfs::REMOVE, "REMOVE", Needs::All("d"), |at| named(&at.dir, b"file")),
    row(nfs::RMDIR, "RMDIR", Needs::All("d"), |at| named(&at.dir, b"sub")),
    row(nfs::RENAME, "RENAME", Needs::All("cd"), |at| rename((&at.dir, b"file"), &at.dir, b"new")),
    row(nfs::RENAME, "RENAME onto a file", Needs::All("cd"), |at| {
        rename((&at.dir, b"file"), &at.dir, b"other")
    }),
    row(nfs::RENAME, "RENAME between directories", Needs::All("cd"), |at| {
        rename((&at.dir, b"file"), &at.sub, b"new")
    }),
    row(nfs::LINK, "LINK", Needs::All("c"), |at| {
        let (dir, file) = (sealed(&at.dir), sealed(&at.file));
        encoded(&Link3args { file: Opaque(&file), link: place(&dir, b"new") })
    }),
    row(nfs::READDIR, "READDIR", Needs::All("r"), |at| {
        let (cookie, cookieverf, count) = (0, [0; 8], 4096);
        encoded(&Readdir3args { dir: Opaque(&sealed(&at.dir)), cookie, cookieverf, count })
    }),
    row(nfs::READDIRPLUS, "READDIRPLUS", Needs::All("r"), |at| {
        let (cookie, cookieverf, dircount, maxcount) = (0, [0; 8], 4096, 8192);
        let dir = sealed(&at.dir);
        encoded(&Readdirplus3args { dir: Opaque(&dir), cookie, cookieverf, dircount, maxcount })
    }),
    row(nfs::FSSTAT, "FSSTAT", Needs::Any, |at| bare(&at.dir)),
    row(nfs::FSINFO, "FSINFO", Needs::Any, |at| bare(&at.dir)),
    row(nfs::PATHCONF, "PATHCONF", Needs::Any, |at| bare(&at.dir)),
    row(nfs::COMMIT, "COMMIT", Needs::Any, |at| {
        encoded(&Commit3args { file: Opaque(&sealed(&at.file)), offset: 0, count: 0 })
    }),
    mounting(mnt::NULL, Needs::Nothing, |_| Vec::new()),
    // Every key may see the root of the export, because it shows its credentials there.
    mounting(mnt::MNT, Needs::Nothing, |_| path("/srv")),
    mounting(mnt::MNT, Needs::Any, |_| path("/srv/dir")),
    mounting(mnt::MNT, Needs::All("x"), |_| path("/srv/dir/sub")),
    mounting(mnt::DUMP, Needs::Nothing, |_| Vec::new()),
    mounting(mnt::UMNT, Needs::Nothing, |_| path("/srv/dir")),
    mounting(mnt::UMNTALL, Needs::Nothing, |_| Vec::new()),
    mounting(mnt::EXPORT, Needs::Nothing, |_| Vec::new()),
    locking(nlm::NULL, Needs::Nothing, |_| Vec::new()),
    locking(nlm::TEST, Needs::Account, |at| test(&at.file)),
    locking(nlm::LOCK, Needs::Account, |at| lock(&at.file, false)),
    locking(nlm::LOCK, Needs::Account, |at| lock(&at.file, true)),
    locking(nlm::NM_LOCK, Needs::Account, |at| lock(&at.file, false)),
    // A lock can be released after the right to take it has ended.
    locking(nlm::CANCEL, Needs::Any, |at| cancel(&at.file)),
    locking(nlm::UNLOCK, Needs::Any, |at| unlock(&at.file)),
    // The server does not call a host that comes by TLS, so these get an empty reply.
    locking(nlm::TEST_MSG, Needs::Nothing, |at| test(&at.file)),
    locking(nlm::LOCK_MSG, Needs::Nothing, |at| lock(&at.file, false)),
    locking(nlm::CANCEL_MSG, Needs::Nothing, |at| cancel(&at.file)),
    locking(nlm::UNLOCK_MSG, Needs::Nothing, |at| unlock(&at.file)),
    locking(nlm::SHARE, Needs::Account, |at| share(&at.file)),
    locking(nlm::UNSHARE, Needs::Any, |at| share(&at.file)),
    locking(nlm::FREE_ALL, Needs::Nothing, |_| {
        encoded(&Nlm4Notify { name: Opaque(b"client"), state: 1 })
    }),
];

#[test]
fn every_procedure_asks_for_the_rights_that_it_needs() {
    let faults: Vec<String> = ROWS.iter().flat_map(faults).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The calls whose answers or effects differ from the table.
fn faults(row: &Row) -> Vec<String> {
    let fault = |rights: String| {
        let at = Furnished::granting(&rights);
        let (before, expected) = (at.snapshot(), row.needs.verdict(&rights));
        let answer = answered(row, &at);
        let is_unchanged = expected == Verdict::Done || at.snapshot() == before;
        let Row { procedure, told, .. } = row;
        let told = format!("procedure {procedure}, {told}, with rights {rights:?}: {answer:?}");
        (answer != expected || !is_unchanged).then_some(told)
    };
    row.needs.trials().into_iter().filter_map(fault).collect()
}

#[test]
fn every_procedure_has_a_row() {
    let rows: BTreeSet<_> = ROWS.iter().map(|row| (row.program, row.procedure)).collect();
    let expected: BTreeSet<_> = all().difference(&not_served()).copied().collect();
    assert_eq!(rows, expected);
}

#[test]
fn a_lock_asked_for_by_a_message_is_not_granted_to_a_key() {
    for rights in ["", "r", "w", "rwxcda"] {
        let at = Furnished::granting(rights);
        let world = World::at(&at.exports).by_channel(at.channel.clone());
        let arguments = lock(&at.file, true);
        world.send(&world.record(nlm_program::PROGRAM, nlm::LOCK_MSG, &arguments));
        assert!(world.messages().is_empty());
        let host = world.engine.host(BEGUN, b"192.0.2.1", Origin::default()).unwrap();
        let file = at.exports.current().unseal_key(&sealed(&at.file)).unwrap();
        let (range, kind) = (ByteRange::new(0, 10).unwrap(), LockType::Write);
        let wish = HostLock { owner: b"other", file, range, kind };
        let is_locked = world.engine.test_host(BEGUN, &host, &wish).is_err();
        assert!(!is_locked, "rights {rights:?}");
    }
}

/// Linux sets the mode and the times by another call after an exclusive CREATE.
#[test]
fn the_attributes_of_a_file_that_was_made_exclusively_need_the_right_to_create_alone() {
    let make = |at: &Furnished| create(&at.dir, b"new", Createhow3::Exclusive([3; 8]));
    let change = |at: &Furnished| {
        let name = comity_vfs::Name::new(b"new").unwrap();
        let made = at.fs.lookup(&crate::granted::alice(), &at.dir, name).unwrap();
        setattr(&made.node.handle, Sattr3 { mode: Some(0o600), ..Sattr3::default() })
    };
    let at = Furnished::granting("rwxcd");
    for (procedure, arguments) in
        [(nfs::CREATE, make as fn(&Furnished) -> Vec<u8>), (nfs::SETATTR, change)]
    {
        let row = row(procedure, "an exclusive file", Needs::All("c"), arguments);
        assert_eq!(answered(&row, &at), Verdict::Done, "procedure {procedure}");
    }
}

/// Makes the call and reads the status of the reply.
fn answered(row: &Row, at: &Furnished) -> Verdict {
    let world = World::at(&at.exports).by_channel(at.channel.clone());
    let record = world.record(row.program, row.procedure, &(row.arguments)(at));
    let reply = world.send_watching(&record, &mut |_| {});
    let reply = reply.unwrap();
    assert_eq!(reply.verdict, (0, 0), "procedure {}", row.procedure);
    match row.program {
        nlm_program::PROGRAM => of_lock(&reply.body),
        mount::PROGRAM if row.procedure != mnt::MNT => Verdict::Done,
        _ if row.procedure == nfs::NULL => Verdict::Done,
        _ => of_status(word(&reply.body, 0)),
    }
}

fn of_status(status: u32) -> Verdict {
    match status {
        0 => Verdict::Done,
        status if status == Nfsstat3::Acces as u32 => Verdict::Refused,
        status if status == Nfsstat3::Stale as u32 || status == Nfsstat3::NoEnt as u32 => {
            Verdict::Gone
        }
        status => panic!("status {status}"),
    }
}

/// The status follows the cookie. Calls without a result have no status.
fn of_lock(reply: &[u8]) -> Verdict {
    if reply.is_empty() {
        return Verdict::Done;
    }
    match word(reply, 8) {
        status if status == Nlm4Stats::Granted as u32 => Verdict::Done,
        status if status == Nlm4Stats::DeniedNolocks as u32 => Verdict::Refused,
        status if status == Nlm4Stats::StaleFh as u32 => Verdict::Gone,
        status => panic!("status {status} of NLM"),
    }
}

fn word(body: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(body[at..at + 4].try_into().unwrap())
}

fn bare(object: &Handle) -> Vec<u8> {
    encoded(&Opaque::<{ nfs3::HANDLE_BYTES_MAX }>(&sealed(object)))
}

fn place<'a>(dir: &'a [u8], name: &'a [u8]) -> Diropargs3<'a> {
    Diropargs3 { dir: Opaque(dir), name: Opaque(name) }
}

fn named(dir: &Handle, name: &[u8]) -> Vec<u8> {
    encoded(&place(&sealed(dir), name))
}

fn setattr(object: &Handle, new_attributes: Sattr3) -> Vec<u8> {
    encoded(&Setattr3args { object: Opaque(&sealed(object)), new_attributes, guard: None })
}

fn write(file: &Handle, stable: StableHow) -> Vec<u8> {
    let (file, data) = (sealed(file), Opaque(&b"other"[..]));
    encoded(&Write3args { file: Opaque(&file), offset: 3, count: 5, stable, data })
}

fn create(dir: &Handle, name: &[u8], how: Createhow3) -> Vec<u8> {
    encoded(&Create3args { place: place(&sealed(dir), name), how })
}

fn rename((source, old): (&Handle, &[u8]), target: &Handle, new: &[u8]) -> Vec<u8> {
    let (source, target) = (sealed(source), sealed(target));
    encoded(&Rename3args { from: place(&source, old), to: place(&target, new) })
}

fn path(path: &str) -> Vec<u8> {
    encoded(&Opaque::<{ mount::PATH_BYTES_MAX }>(path.as_bytes()))
}

const COOKIE: Opaque<'static, 1024> = Opaque(b"cook");

fn alock(fh: &[u8]) -> Nlm4Lock<'_> {
    let (caller_name, oh) = (Opaque(&b"client"[..]), Opaque(&b"owner"[..]));
    Nlm4Lock { caller_name, fh: Opaque(fh), oh, svid: 1, l_offset: 0, l_len: 10 }
}

fn test(file: &Handle) -> Vec<u8> {
    let fh = sealed(file);
    encoded(&Nlm4Testargs { cookie: COOKIE, exclusive: true, alock: alock(&fh) })
}

fn lock(file: &Handle, exclusive: bool) -> Vec<u8> {
    let (fh, cookie, block, reclaim, state) = (sealed(file), COOKIE, false, false, 1);
    encoded(&Nlm4Lockargs { cookie, block, exclusive, alock: alock(&fh), reclaim, state })
}

fn cancel(file: &Handle) -> Vec<u8> {
    let (fh, cookie, block, exclusive) = (sealed(file), COOKIE, false, true);
    encoded(&Nlm4Cancargs { cookie, block, exclusive, alock: alock(&fh) })
}

fn unlock(file: &Handle) -> Vec<u8> {
    encoded(&Nlm4Unlockargs { cookie: COOKIE, alock: alock(&sealed(file)) })
}

fn share(file: &Handle) -> Vec<u8> {
    let (fh, caller_name, oh) = (sealed(file), Opaque(&b"client"[..]), Opaque(&b"owner"[..]));
    let share = Nlm4Share { caller_name, fh: Opaque(&fh), oh, mode: 0, access: 1 };
    encoded(&Nlm4Shareargs { cookie: COOKIE, share, reclaim: false })
}
