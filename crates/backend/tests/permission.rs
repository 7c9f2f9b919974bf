//! The verdicts of `comity_vfs::permission` are the Linux kernel's: both are asked about the same
//! random objects under the same ids. Needs root; skipped otherwise, and says so.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::os::fd::OwnedFd;

use comity_vfs::permission::{
    Object, Permissions, group_and_mode_of_new, mode_after_chmod, mode_after_chown,
    mode_after_write,
};
use comity_vfs::{
    Acl, AclEntry, AclTag, Attr, Cred, Device, Disk, FileType, Gid, Mode, SetAttr, SetTime, Status,
    Time, Uid,
};
use proptest::prelude::*;
use rustix::fs::{self as kernel, AtFlags, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

type Verdict = Result<(), Status>;

/// Few ids, so that callers and owners often match. Root is among the users.
const UIDS: [u32; 4] = [0, 61_001, 61_002, 61_003];
const GIDS: [u32; 4] = [0, 62_001, 62_002, 62_003];

/// An object to be made.
#[derive(Debug, Clone)]
struct Scene {
    directory: bool,
    mode: u32,
    uid: u32,
    gid: u32,
    acl: Option<Acl<Disk>>,
}

fn id(ids: [u32; 4]) -> impl Strategy<Value = u32> {
    prop::sample::select(ids.to_vec())
}

fn caller() -> impl Strategy<Value = Cred<Disk>> {
    let groups = prop::collection::vec(id(GIDS), 0..3);
    (id(UIDS), id(GIDS), groups).prop_map(|(uid, gid, groups)| {
        Cred::new(Uid::new(uid), Gid::new(gid)).with_groups(groups.into_iter().map(Gid::new))
    })
}

fn acl() -> impl Strategy<Value = Acl<Disk>> {
    let named = prop::collection::btree_map(1..4_usize, 0..8_u8, 0..3);
    (prop::collection::vec(0..8_u8, 4), named.clone(), named).prop_map(|(digits, users, groups)| {
        let user = |(place, digit): (usize, u8)| (AclTag::User(Uid::new(UIDS[place])), digit);
        let group = |(place, digit): (usize, u8)| (AclTag::Group(Gid::new(GIDS[place])), digit);
        let mut entries = vec![(AclTag::UserObj, digits[0])];
        entries.extend(users.into_iter().map(user));
        entries.push((AclTag::GroupObj, digits[1]));
        entries.extend(groups.into_iter().map(group));
        entries.extend([(AclTag::Mask, digits[2]), (AclTag::Other, digits[3])]);
        let entry = |(tag, permissions)| AclEntry { tag, permissions };
        Acl { entries: entries.into_iter().map(entry).collect() }
    })
}

fn scene(directory: impl Strategy<Value = bool>) -> impl Strategy<Value = Scene> {
    let acl = prop::option::of(acl());
    (directory, 0..0o10000_u32, id(UIDS), id(GIDS), acl)
        .prop_map(|(directory, mode, uid, gid, acl)| Scene { directory, mode, uid, gid, acl })
}

/// A directory that everybody may enter, in which the object of each scene is made.
struct Stage {
    dir: tempfile::TempDir,
    fd: OwnedFd,
}

impl Stage {
    /// Returns `None` and prints a reason if this process cannot act under other ids.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: needs root to act under other ids");
            return None;
        }
        rustix::process::umask(kernel::Mode::empty());
        let dir = tempfile::tempdir().unwrap();
        kernel::chmod(dir.path(), kernel::Mode::from(0o777)).unwrap();
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let fd = kernel::open(dir.path(), flags, kernel::Mode::empty()).unwrap();
        Some(Self { dir, fd })
    }

    /// Makes an object; returns its attributes and its ACL as user space knows them.
    fn make(&self, name: &str, scene: &Scene) -> (Attr<Disk>, Option<Acl<Disk>>) {
        let path = self.dir.path().join(name);
        let _ = std::fs::remove_dir_all(&path);
        let _ = std::fs::remove_file(&path);
        if scene.directory {
            std::fs::create_dir(&path).unwrap();
        } else {
            std::fs::write(&path, b"data").unwrap();
        }
        std::os::unix::fs::chown(&path, Some(scene.uid), Some(scene.gid)).unwrap();
        if let Some(acl) = &scene.acl {
            set_acl(&path, "system.posix_acl_access", acl);
        }
        // After the ACL: chmod sets the mask of the ACL.
        kernel::chmod(&path, kernel::Mode::from(scene.mode)).unwrap();
        let mode = Mode::new(scene.mode);
        (self.attr(name), scene.acl.clone().map(|acl| acl.with_mode(mode)))
    }

    fn attr(&self, name: &str) -> Attr<Disk> {
        let stat = kernel::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).unwrap();
        let file_type = match kernel::FileType::from_raw_mode(stat.st_mode) {
            kernel::FileType::Directory => FileType::Directory,
            _ => FileType::Regular,
        };
        Attr {
            file_type,
            mode: Mode::new(stat.st_mode),
            links: 1,
            uid: Uid::new(stat.st_uid),
            gid: Gid::new(stat.st_gid),
            size: 0,
            used: 0,
            device: Device::default(),
            fsid: 0,
            fileid: 0,
            atime: Time::default(),
            mtime: Time::default(),
            ctime: Time::default(),
            change: 0,
        }
    }
}

fn set_acl(path: &std::path::Path, attribute: &str, acl: &Acl<Disk>) {
    let bytes = encode(acl);
    kernel::setxattr(path, attribute, &bytes, kernel::XattrFlags::empty()).unwrap();
}

/// Encodes an ACL as `linux/posix_acl_xattr.h` describes it.
fn encode(acl: &Acl<Disk>) -> Vec<u8> {
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for entry in &acl.entries {
        let (tag, id) = match entry.tag {
            AclTag::UserObj => (0x01_u16, u32::MAX),
            AclTag::User(uid) => (0x02, uid.number()),
            AclTag::GroupObj => (0x04, u32::MAX),
            AclTag::Group(gid) => (0x08, gid.number()),
            AclTag::Mask => (0x10, u32::MAX),
            AclTag::Other => (0x20, u32::MAX),
        };
        bytes.extend(tag.to_le_bytes());
        bytes.extend(u16::from(entry.permissions).to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// Does `work` on this thread under the caller's ids, then returns to root.
fn under<T>(cred: &Cred<Disk>, work: impl FnOnce() -> T) -> T {
    let root = (rustix::process::Uid::ROOT, rustix::process::Gid::ROOT);
    let uid = rustix::process::Uid::from_raw(cred.uid.number());
    let gid = rustix::process::Gid::from_raw(cred.gid.number());
    let group = |gid: &Gid<Disk>| rustix::process::Gid::from_raw(gid.number());
    let groups: Vec<_> = cred.groups.iter().map(group).collect();
    set_thread_groups(&groups).unwrap();
    set_thread_res_gid(gid, gid, root.1).unwrap();
    set_thread_res_uid(uid, uid, root.0).unwrap();
    let outcome = work();
    set_thread_res_uid(root.0, root.0, root.0).unwrap();
    set_thread_res_gid(root.1, root.1, root.1).unwrap();
    set_thread_groups(&[]).unwrap();
    outcome
}

fn verdict<T>(outcome: Result<T, Errno>) -> Verdict {
    match outcome {
        Ok(_) => Ok(()),
        Err(Errno::ACCESS) => Err(Status::Acces),
        Err(Errno::PERM) => Err(Status::Perm),
        Err(other) => panic!("neither yes nor no: {other}"),
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 1_500, failure_persistence: None, ..ProptestConfig::default() }
}

const DIGITS: [(Permissions, kernel::Access); 3] = [
    (Permissions::READ, kernel::Access::READ_OK),
    (Permissions::WRITE, kernel::Access::WRITE_OK),
    (Permissions::EXECUTE, kernel::Access::EXEC_OK),
];

#[test]
fn the_mode_decides_reading_writing_and_executing() {
    let Some(stage) = Stage::new() else { return };
    proptest!(config(), |(scene in scene(any::<bool>()), cred in caller())| {
        let (attr, acl) = stage.make("a", &scene);
        for set in 1..8_usize {
            let chosen = DIGITS.iter().enumerate().filter(|(place, _)| set & 1 << place != 0);
            let chosen: Vec<_> = chosen.map(|(_, digit)| *digit).collect();
            let wanted = chosen.iter().map(|(one, _)| *one).reduce(|a, b| a | b).unwrap();
            let asked = chosen.iter().fold(kernel::Access::empty(), |all, (_, one)| all | *one);
            let kernels = under(&cred, || {
                verdict(kernel::accessat(&stage.fd, "a", asked, AtFlags::EACCESS))
            });
            let ours = Object { attr: &attr, acl: acl.as_ref() }.check(&cred, wanted);
            prop_assert_eq!(ours, kernels, "{:?} of {:?}, {:?}", wanted, attr, acl);
        }
    });
}

#[test]
fn an_entry_is_removed_by_the_rules_of_posix() {
    let Some(stage) = Stage::new() else { return };
    let entry = scene(Just(false));
    proptest!(config(), |(dir in scene(Just(true)), entry in entry, cred in caller())| {
        let (dir_attr, acl) = stage.make("d", &dir);
        let (entry_attr, _) = stage.make("d/e", &entry);
        let kernels = under(&cred, || {
            verdict(kernel::unlinkat(&stage.fd, "d/e", AtFlags::empty()))
        });
        let ours = Object { attr: &dir_attr, acl: acl.as_ref() }.check_delete(&cred, &entry_attr);
        prop_assert_eq!(ours, kernels, "{:?} out of {:?}, {:?}", entry_attr, dir_attr, acl);
    });
}

fn time() -> impl Strategy<Value = Option<SetTime>> {
    let time = SetTime::To(Time { seconds: 5, nanoseconds: 6 });
    prop_oneof![Just(None), Just(Some(SetTime::Now)), Just(Some(time))]
}

fn timespec(time: Option<SetTime>) -> Timespec {
    let nanoseconds = match time {
        None => kernel::UTIME_OMIT,
        Some(SetTime::Now) => kernel::UTIME_NOW,
        Some(SetTime::To(time)) => time.nanoseconds.into(),
    };
    Timespec { tv_sec: 5, tv_nsec: nanoseconds }
}

#[test]
fn times_are_set_by_the_rules_of_posix() {
    let Some(stage) = Stage::new() else { return };
    let times = (time(), time());
    proptest!(config(), |(scene in scene(any::<bool>()), cred in caller(), times in times)| {
        let (attr, acl) = stage.make("a", &scene);
        let stamps =
            Timestamps { last_access: timespec(times.0), last_modification: timespec(times.1) };
        let kernels = under(&cred, || {
            verdict(kernel::utimensat(&stage.fd, "a", &stamps, AtFlags::empty()))
        });
        let set = SetAttr { atime: times.0, mtime: times.1, ..SetAttr::default() };
        let ours = Object { attr: &attr, acl: acl.as_ref() }.check_setattr(&cred, &set);
        prop_assert_eq!(ours, kernels, "{:?} of {:?}, {:?}", set, attr, acl);
    });
}

#[test]
fn the_mode_changes_by_the_rules_of_posix() {
    let Some(stage) = Stage::new() else { return };
    let bits = 0..0o10000_u32;
    proptest!(config(), |(scene in scene(any::<bool>()), cred in caller(), bits in bits)| {
        let (attr, acl) = stage.make("a", &scene);
        let kernels = under(&cred, || {
            verdict(kernel::chmodat(&stage.fd, "a", kernel::Mode::from(bits), AtFlags::empty()))
        });
        let set = SetAttr { mode: Some(Mode::new(bits)), ..SetAttr::default() };
        let ours = Object { attr: &attr, acl: acl.as_ref() }.check_setattr(&cred, &set);
        prop_assert_eq!(ours, kernels, "{:?}", attr);
        if ours.is_ok() {
            let mode = mode_after_chmod(&cred, attr.gid, Mode::new(bits));
            prop_assert_eq!(mode, stage.attr("a").mode, "{:o} on {:?}", bits, attr);
        }
    });
}

#[test]
fn owner_and_group_change_by_the_rules_of_posix() {
    let Some(stage) = Stage::new() else { return };
    let ids = (prop::option::of(id(UIDS)), prop::option::of(id(GIDS)));
    proptest!(config(), |(scene in scene(any::<bool>()), cred in caller(), ids in ids)| {
        prop_assume!(ids != (None, None));
        let (attr, acl) = stage.make("a", &scene);
        let uid = ids.0.map(rustix::process::Uid::from_raw);
        let gid = ids.1.map(rustix::process::Gid::from_raw);
        let kernels = under(&cred, || {
            verdict(kernel::chownat(&stage.fd, "a", uid, gid, AtFlags::SYMLINK_NOFOLLOW))
        });
        let (uid, gid) = (ids.0.map(Uid::new), ids.1.map(Gid::new));
        let set = SetAttr { uid, gid, ..SetAttr::default() };
        let ours = Object { attr: &attr, acl: acl.as_ref() }.check_setattr(&cred, &set);
        prop_assert_eq!(ours, kernels, "{:?} of {:?}", set, attr);
        if ours.is_ok() {
            prop_assert_eq!(mode_after_chown(&cred, &attr), stage.attr("a").mode, "{:?}", attr);
        }
    });
}

#[test]
fn a_write_clears_set_id_bits_of_the_mode() {
    let Some(stage) = Stage::new() else { return };
    proptest!(config(), |(scene in scene(Just(false)), cred in caller(), cut in any::<bool>())| {
        let (attr, acl) = stage.make("a", &scene);
        let opened = under(&cred, || {
            let flags = if cut { OFlags::WRONLY | OFlags::TRUNC } else { OFlags::WRONLY };
            let file = kernel::openat(&stage.fd, "a", flags, kernel::Mode::empty())?;
            rustix::io::write(&file, b"x").map(drop)
        });
        let ours = Object { attr: &attr, acl: acl.as_ref() }.check(&cred, Permissions::WRITE);
        prop_assert_eq!(ours, verdict(opened), "{:?}, {:?}", attr, acl);
        if ours.is_ok() {
            prop_assert_eq!(mode_after_write(&cred, &attr), stage.attr("a").mode, "{:?}", attr);
        }
    });
}

#[test]
fn a_new_object_inherits_from_its_directory() {
    let Some(stage) = Stage::new() else { return };
    let new = (any::<bool>(), 0..0o10000_u32, prop::option::of(acl()));
    proptest!(config(), |(dir in scene(Just(true)), cred in caller(), new in new)| {
        let (directory, bits, default) = new;
        // The kernel's mkdir takes no set-id bits.
        let bits = if directory { bits & 0o1777 } else { bits };
        let (attr, acl) = stage.make("d", &dir);
        if let Some(default) = &default {
            set_acl(&stage.dir.path().join("d"), "system.posix_acl_default", default);
        }
        let mode = kernel::Mode::from(bits);
        let made = under(&cred, || {
            if directory {
                return kernel::mkdirat(&stage.fd, "d/e", mode);
            }
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY;
            kernel::openat(&stage.fd, "d/e", flags, mode).map(drop)
        });
        let wanted = Permissions::WRITE | Permissions::EXECUTE;
        let ours = Object { attr: &attr, acl: acl.as_ref() }.check(&cred, wanted);
        prop_assert_eq!(ours, verdict(made), "{:?}, {:?}", attr, acl);
        if ours.is_ok() {
            let file_type = if directory { FileType::Directory } else { FileType::Regular };
            let (gid, mode) = group_and_mode_of_new(&cred, &attr, file_type, Mode::new(bits));
            let inherited = default.map(|acl| acl.inherited(mode));
            let mode = inherited.as_ref().map_or(mode, |(_, mode)| *mode);
            let made = stage.attr("d/e");
            prop_assert_eq!((gid, mode, cred.uid), (made.gid, made.mode, made.uid), "{:?}", attr);
            check_acl(&stage, inherited.map(|(acl, _)| acl))?;
        }
    });
}

/// Checks that the kernel gave the new object this ACL.
fn check_acl(stage: &Stage, wanted: Option<Acl<Disk>>) -> Result<(), TestCaseError> {
    let mut bytes = vec![0; 4096];
    let path = stage.dir.path().join("d/e");
    let found = match kernel::getxattr(&path, "system.posix_acl_access", &mut bytes[..]) {
        Ok(length) => Some(bytes[..length].to_vec()),
        Err(Errno::NODATA) => None,
        Err(other) => panic!("{other}"),
    };
    prop_assert_eq!(wanted.as_ref().map(encode), found, "{:?}", wanted);
    Ok(())
}
