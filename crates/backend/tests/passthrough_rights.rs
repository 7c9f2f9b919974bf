//! Rights in a served folder are those that the kernel itself gives. All tests need root, which
//! alone can act for several callers.
#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use comity_vfs::{
    Access, Acl, AclEntry, AclKind, AclTag, Cred, Disk, Fs, Gid, Mode, SetAttr, Status, Uid,
};
use common::{caller, is_root, mode, name, open, read, root, serve, set_mode};
use proptest::prelude::*;

const ALICE: u32 = 2001;
const BOB: u32 = 2002;
const STAFF: u32 = 3001;
const GUESTS: u32 = 3002;

/// Asks the kernel itself, on a thread that really has the caller's ids.
fn kernel_verdict(cred: &Cred<Disk>, path: &Path) -> Access {
    use rustix::fs::{Access as Right, AtFlags, CWD, accessat};
    let (cred, path) = (cred.clone(), path.to_owned());
    let ask = move || {
        let (uid, gid) = (cred.uid.number(), cred.gid.number());
        let groups: Vec<_> =
            cred.groups.iter().map(|gid| rustix::process::Gid::from_raw(gid.number())).collect();
        let gid = rustix::process::Gid::from_raw(gid);
        let uid = rustix::process::Uid::from_raw(uid);
        rustix::thread::set_thread_groups(&groups).unwrap();
        rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        let may = |right| accessat(CWD, &path, right, AtFlags::EACCESS).is_ok();
        let mut granted = Access::NONE;
        for (right, access) in [
            (Right::READ_OK, Access::READ),
            (Right::WRITE_OK, Access::MODIFY | Access::EXTEND),
            (Right::EXEC_OK, Access::EXECUTE),
        ] {
            if may(right) {
                granted = granted | access;
            }
        }
        granted
    };
    std::thread::spawn(ask).join().unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    Mode(u32),
    Owner(u32, u32),
    Acl(Vec<(bool, u32, u8)>, u8),
    NoAcl,
}

fn step() -> impl Strategy<Value = Step> {
    let id = prop_oneof![Just(0_u32), Just(ALICE), Just(BOB)];
    let group = prop_oneof![Just(0_u32), Just(STAFF), Just(GUESTS)];
    let named = (any::<bool>(), 0_u32..2, 0_u8..8);
    prop_oneof![
        (0_u32..0o10000).prop_map(Step::Mode),
        (id, group).prop_map(|(uid, gid)| Step::Owner(uid, gid)),
        (prop::collection::vec(named, 1..4), 0_u8..8)
            .prop_map(|(named, mask)| Step::Acl(named, mask)),
        Just(Step::NoAcl),
    ]
}

fn acl(named: &[(bool, u32, u8)], mask: u8) -> Acl<Disk> {
    let entry = |tag, permissions| AclEntry { tag, permissions };
    let mut users = Vec::new();
    let mut groups = Vec::new();
    for (user, which, permissions) in named {
        let id = [ALICE, BOB, STAFF, GUESTS][*which as usize + if *user { 0 } else { 2 }];
        let place = if *user { &mut users } else { &mut groups };
        let tag = if *user { AclTag::User(Uid::new(id)) } else { AclTag::Group(Gid::new(id)) };
        if place.iter().all(|one: &AclEntry<Disk>| one.tag != tag) {
            place.push(entry(tag, *permissions));
        }
    }
    let mut entries = vec![entry(AclTag::UserObj, mask ^ 5)];
    entries.append(&mut users);
    entries.push(entry(AclTag::GroupObj, mask ^ 3));
    entries.append(&mut groups);
    entries.push(entry(AclTag::Mask, mask));
    entries.push(entry(AclTag::Other, mask & 1));
    Acl { entries }
}

fn callers() -> Vec<Cred<Disk>> {
    let groups = |ids: &[u32]| ids.iter().map(|id| Gid::new(*id)).collect::<Vec<_>>();
    vec![
        root(),
        caller(ALICE, STAFF),
        caller(BOB, GUESTS),
        caller(BOB, 4000).with_groups(groups(&[STAFF, 5000])),
        caller(2003, 4000).with_groups(groups(&[GUESTS, STAFF])),
        caller(2004, 4001),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_remembered_verdict_is_the_kernels_own(
        steps in prop::collection::vec((step(), any::<bool>(), any::<bool>()), 1..6),
    ) {
        if !is_root() {
            return Ok(());
        }
        let served = serve();
        let file = served.create(&root(), "file", 0o640).unwrap();
        let path = served.folder.path().join("file");
        set_mode(served.folder.path(), 0o755);
        for (step, outside, pause) in steps {
            apply(&served, &file.handle, &path, &step, outside);
            if pause {
                // Verdicts are remembered only for files that have been unchanged for a while.
                std::thread::sleep(Duration::from_millis(60));
            }
            for cred in callers().iter().chain(&callers()) {
                let (granted, _) = served.fs.access(cred, &file.handle, Access::ALL).unwrap();
                served.fs.release_identity().unwrap();
                prop_assert_eq!(granted, kernel_verdict(cred, &path), "{:?} {:?}", cred, step);
            }
        }
    }
}

fn apply(
    served: &common::Served,
    file: &comity_vfs::Handle,
    path: &Path,
    step: &Step,
    outside: bool,
) {
    served.fs.release_identity().unwrap();
    match step {
        Step::Mode(bits) if outside => set_mode(path, *bits),
        Step::Mode(bits) => drop(served.fs.setattr(&root(), file, &mode(*bits), None).unwrap()),
        Step::Owner(uid, gid) if outside => chown(path, Some(*uid), Some(*gid)).unwrap(),
        Step::Owner(uid, gid) => {
            let (uid, gid) = (Some(Uid::new(*uid)), Some(Gid::new(*gid)));
            let set = SetAttr { uid, gid, ..SetAttr::default() };
            served.fs.setattr(&root(), file, &set, None).unwrap();
        }
        Step::Acl(named, mask) => {
            let acl = acl(named, *mask);
            served.fs.setacl(&root(), file, AclKind::Access, Some(&acl)).unwrap();
            assert_eq!(served.fs.getacl(file, AclKind::Access).unwrap(), Some(acl));
        }
        Step::NoAcl => drop(served.fs.setacl(&root(), file, AclKind::Access, None).unwrap()),
    }
}

#[test]
fn callers_act_under_their_own_ids() {
    if !is_root() {
        return;
    }
    let served = serve();
    let (alice, bob) = (caller(ALICE, STAFF), caller(BOB, GUESTS));
    let file = served.create(&alice, "file", 0o600).unwrap();
    assert_eq!((file.attr.uid.number(), file.attr.gid.number()), (ALICE, STAFF));
    served.fs.write(&alice, &file.handle, 0, b"mine").unwrap();
    assert_eq!(read(&served.fs, &bob, &file.handle, 0, 9), Err(Status::Acces));
    assert_eq!(served.fs.write(&bob, &file.handle, 0, b"x").unwrap_err(), Status::Acces);
    assert_eq!(served.fs.setattr(&bob, &file.handle, &mode(0o666), None), Err(Status::Perm));
    assert_eq!(read(&served.fs, &alice, &file.handle, 0, 9).unwrap().0, b"mine");
    // After a restart a caller's file is opened by its handle again, even if another caller asks
    // first.
    let again = open(served.folder.path());
    assert_eq!(read(&again, &bob, &file.handle, 0, 9), Err(Status::Acces));
    assert_eq!(read(&again, &alice, &file.handle, 0, 9).unwrap().0, b"mine");
    let set = SetAttr { uid: Some(Uid::new(BOB)), ..SetAttr::default() };
    assert_eq!(served.fs.setattr(&alice, &file.handle, &set, None), Err(Status::Perm));
}

#[test]
fn the_owner_reads_and_writes_whatever_the_mode() {
    if !is_root() {
        return;
    }
    let served = serve();
    let alice = caller(ALICE, STAFF);
    let file = served.create(&alice, "file", 0o000).unwrap();
    let fs = open(served.folder.path());
    fs.write(&alice, &file.handle, 0, b"data").unwrap();
    assert_eq!(read(&fs, &alice, &file.handle, 0, 9).unwrap().0, b"data");
    let size = SetAttr { size: Some(2), ..SetAttr::default() };
    fs.setattr(&alice, &file.handle, &size, None).unwrap();
    assert_eq!(fs.access(&alice, &file.handle, Access::ALL).unwrap().0, Access::NONE);
    assert_eq!(read(&fs, &caller(BOB, GUESTS), &file.handle, 0, 9), Err(Status::Acces));
}

#[test]
fn a_write_clears_set_id_bits_of_others_files() {
    if !is_root() {
        return;
    }
    let served = serve();
    let file = served.create(&caller(ALICE, STAFF), "file", 0o6777).unwrap();
    assert_eq!(file.attr.mode.bits(), 0o6777);
    let written = served.fs.write(&caller(BOB, GUESTS), &file.handle, 0, b"x").unwrap();
    assert_eq!(written.change.after.unwrap().mode.bits(), 0o777);
}

#[test]
fn a_sticky_directory_protects_its_entries() {
    if !is_root() {
        return;
    }
    let served = serve();
    let dir = served.mkdir(&root(), "dir", 0o1777).unwrap();
    let (fs, alice, bob) = (&served.fs, caller(ALICE, STAFF), caller(BOB, GUESTS));
    let how = comity_vfs::Create::Guarded(mode(0o666));
    fs.create(&alice, &dir.handle, name(b"file"), &how).unwrap();
    assert_eq!(fs.remove(&bob, &dir.handle, name(b"file")), Err(Status::Perm));
    let (old, new) = ((&dir.handle, name(b"file")), (&dir.handle, name(b"new")));
    assert_eq!(fs.rename(&bob, old, new), Err(Status::Perm));
    fs.remove(&alice, &dir.handle, name(b"file")).unwrap();
}

#[test]
fn a_set_gid_directory_hands_its_group_down() {
    if !is_root() {
        return;
    }
    let served = serve();
    let dir = served.mkdir(&root(), "dir", 0o755).unwrap();
    let set = SetAttr { mode: Some(Mode::new(0o2777)), gid: Some(Gid::new(GUESTS)), ..mode(0) };
    let set = SetAttr { mode: Some(Mode::new(0o2777)), ..set };
    served.fs.setattr(&root(), &dir.handle, &set, None).unwrap();
    let alice = caller(ALICE, STAFF);
    let how = comity_vfs::Create::Guarded(mode(0o644));
    let file = served.fs.create(&alice, &dir.handle, name(b"file"), &how).unwrap().value;
    assert_eq!((file.attr.uid.number(), file.attr.gid.number()), (ALICE, GUESTS));
    let inner = served.fs.mkdir(&alice, &dir.handle, name(b"inner"), &mode(0o755)).unwrap().value;
    assert_eq!((inner.attr.gid.number(), inner.attr.mode.bits()), (GUESTS, 0o2755));
}

#[test]
fn a_default_acl_is_inherited() {
    if !is_root() {
        return;
    }
    let served = serve();
    let dir = served.mkdir(&root(), "dir", 0o777).unwrap();
    let wanted = acl(&[(true, 1, 6)], 7);
    served.fs.setacl(&root(), &dir.handle, AclKind::Default, Some(&wanted)).unwrap();
    let how = comity_vfs::Create::Guarded(mode(0o640));
    let alice = caller(ALICE, STAFF);
    let file = served.fs.create(&alice, &dir.handle, name(b"file"), &how).unwrap().value;
    let inherited = served.fs.getacl(&file.handle, AclKind::Access).unwrap().unwrap();
    let named = inherited.entries.iter().find(|entry| entry.tag == AclTag::User(Uid::new(BOB)));
    assert_eq!(named.map(|entry| entry.permissions), Some(6));
    // The requested mode became the mask: BOB may read, not write.
    assert!(read(&served.fs, &caller(BOB, GUESTS), &file.handle, 0, 1).is_ok());
    let refused = served.fs.write(&caller(BOB, GUESTS), &file.handle, 0, b"x");
    assert_eq!(refused.unwrap_err(), Status::Acces);
}

#[test]
fn an_immutable_file_stays_as_it_is() {
    if !is_root() {
        return;
    }
    let served = serve();
    let file = served.create(&root(), "file", 0o666).unwrap();
    served.fs.write(&root(), &file.handle, 0, b"data").unwrap();
    let path = served.folder.path().join("file");
    let chattr = |flag: &str| Command::new("chattr").arg(flag).arg(&path).status();
    match chattr("+i") {
        Ok(status) if status.success() => {}
        outcome => return eprintln!("skipped: chattr +i does not work here: {outcome:?}"),
    }
    let fresh = open(served.folder.path());
    for fs in [&served.fs, &fresh] {
        let top = fs.root();
        for cred in [root(), caller(ALICE, STAFF)] {
            let refused = fs.write(&cred, &file.handle, 0, b"x").unwrap_err();
            assert!(matches!(refused, Status::Perm | Status::Acces), "{refused:?}");
            fs.setattr(&cred, &file.handle, &mode(0o777), None).unwrap_err();
            fs.remove(&cred, &top, name(b"file")).unwrap_err();
        }
        assert!(
            !fs.access(&root(), &file.handle, Access::MODIFY).unwrap().0.contains(Access::MODIFY)
        );
        assert_eq!(read(fs, &root(), &file.handle, 0, 9).unwrap().0, b"data");
        fs.commit(&file.handle).unwrap();
    }
    assert!(chattr("-i").unwrap().success());
    assert_eq!(path.metadata().unwrap().size(), 4);
    served.fs.remove(&root(), &served.root(), name(b"file")).unwrap();
}

#[test]
fn a_directory_is_listed_and_searched_by_those_who_may() {
    if !is_root() {
        return;
    }
    let served = serve();
    let dir = served.mkdir(&root(), "dir", 0o744).unwrap();
    let how = comity_vfs::Create::Guarded(mode(0o644));
    served.fs.create(&root(), &dir.handle, name(b"file"), &how).unwrap();
    let alice = caller(ALICE, STAFF);
    let found = served.fs.lookup(&alice, &dir.handle, name(b"file"));
    assert_eq!(found.unwrap_err(), Status::Acces);
    let entries = common::list(&served.fs, &alice, &dir.handle, 0, 9).unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].2, None, "a caller who may not search learns names alone");
    served.fs.setattr(&root(), &dir.handle, &mode(0o711), None).unwrap();
    assert!(served.fs.lookup(&alice, &dir.handle, name(b"file")).is_ok());
    let refused = common::list(&served.fs, &alice, &dir.handle, 0, 9);
    assert_eq!(refused.unwrap_err(), Status::Acces);
}

#[test]
fn ids_and_times_that_mean_something_else_to_the_kernel_are_refused() {
    if !is_root() {
        return;
    }
    let served = serve();
    let file = served.create(&caller(ALICE, STAFF), "file", 0o600).unwrap();
    for nobody in [caller(u32::MAX, 0), caller(0, u32::MAX), caller(BOB, u32::MAX)] {
        served.lookup(&caller(ALICE, STAFF), "file").unwrap();
        assert_eq!(served.lookup(&nobody, "file"), Err(Status::Acces), "{nobody:?}");
    }
    let none = SetAttr::default();
    let now = comity_vfs::SetTime::To(comity_vfs::Time { seconds: 5, nanoseconds: 0x3fff_ffff });
    for set in [
        SetAttr { uid: Some(Uid::new(u32::MAX)), ..none },
        SetAttr { gid: Some(Gid::new(u32::MAX)), ..none },
        SetAttr { mtime: Some(now), ..none },
    ] {
        let refused = served.fs.setattr(&root(), &file.handle, &set, None);
        assert_eq!(refused, Err(Status::Inval), "{set:?}");
    }
}

#[test]
fn a_new_thread_does_not_take_the_ids_of_its_parent_for_those_of_the_server() {
    if !is_root() {
        return;
    }
    let served = serve();
    let alice = caller(ALICE, STAFF);
    let file = served.create(&alice, "file", 0o600).unwrap();
    let cold = open(served.folder.path());
    assert_eq!(cold.capabilities(), served.fs.capabilities());
    served.lookup(&alice, "file").unwrap();
    std::thread::scope(|scope| {
        // Opening a file by its handle needs the server's own rights.
        let other = scope.spawn(|| cold.getattr(&file.handle));
        assert_eq!(other.join().unwrap().map(|attr| attr.fileid), Ok(file.attr.fileid));
    });
}

/// Runs in a process of its own, in a user namespace that maps fewer groups than users, as that of
/// a container may.
#[test]
fn a_group_that_the_kernel_does_not_know_is_refused() {
    const CHILD: &str = "COMITY_TEST_FEW_GROUPS";
    if std::env::var_os(CHILD).is_some() {
        let served = serve();
        assert!(served.fs.capabilities().caller_identities);
        served.create(&caller(ALICE, 999), "known", 0o644).unwrap();
        let made = served.create(&caller(ALICE, 5_000), "unknown", 0o644);
        assert_eq!(made.unwrap_err(), Status::Acces);
        return;
    }
    if !is_root() {
        return;
    }
    let mut child = std::process::Command::new("unshare")
        .args(["--user", "sh", "-c", "read go; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_group_that_the_kernel_does_not_know_is_refused"])
        .env(CHILD, "1")
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let process = format!("/proc/{}", child.id());
    let namespace = |process: &str| std::fs::read_link(format!("{process}/ns/user")).unwrap();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while namespace(&process) == namespace("/proc/self") {
        assert!(std::time::Instant::now() < deadline, "unshare makes no namespace");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    std::fs::write(format!("{process}/uid_map"), "0 0 65536").unwrap();
    std::fs::write(format!("{process}/gid_map"), "0 0 1000").unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"go\n").unwrap();
    assert!(child.wait().unwrap().success());
}
