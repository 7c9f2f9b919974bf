//! Tests over a Ceph of one node. They are skipped where there is none.

mod barrier;
mod cluster;
mod holds;
mod lost_data;
mod snapshots;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use comity_conformance::{Case, Fixture, Needs, Report, cases};
use comity_vfs::{
    Create, Cred, Disk, FileHold, Fs, Handle, LocalLocks, Mode, Name, Node, RangeLock, ReadInto,
    Result, SetAttr, Status,
};

use self::cluster::CephCluster;
use super::ffi::Vino;
use super::{Ceph, CephOptions};

/// Cases that this file system cannot pass, with the reason.
const NOT_HERE: &[(&str, &str)] = &[
    ("data/statfs_is_sane", "only a manager daemon counts the space, and the tests have none"),
    ("data/a_hole_takes_little_space", "Ceph does not count holes"),
    ("space/punching_gives_space_back", "Ceph does not count holes"),
];

/// Time within which a call to a cluster that has cut this client off must fail.
const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the cluster of all tests.
fn shared_cluster() -> Option<&'static CephCluster> {
    static CLUSTER: OnceLock<Option<CephCluster>> = OnceLock::new();
    let cluster = CLUSTER.get_or_init(CephCluster::start).as_ref();
    if cluster.is_none() {
        println!("skipped: {}", cluster::NEEDED);
    }
    cluster
}

fn open_at(cluster: &CephCluster, path: &str) -> Ceph {
    open_with(cluster, path, CephOptions::default())
}

fn open_with(cluster: &CephCluster, path: &str, options: CephOptions<'_>) -> Ceph {
    let configuration: PathBuf = cluster.configuration();
    let options = CephOptions { configuration: Some(&configuration), ..options };
    Ceph::open(Path::new(path), options).unwrap()
}

fn open(cluster: &CephCluster) -> Ceph {
    open_at(cluster, "/")
}

fn root() -> Cred<Disk> {
    Cred::root()
}

fn name(name: &str) -> Name<'_> {
    Name::new(name.as_bytes()).unwrap()
}

fn make_file(fs: &Ceph, dir: &Handle, called: &str) -> Handle {
    let how = Create::Guarded(SetAttr::default());
    fs.create(&root(), dir, name(called), &how).unwrap().value.handle
}

fn make_dir(fs: &Ceph, dir: &Handle, called: &str) -> Handle {
    fs.mkdir(&root(), dir, name(called), &SetAttr::default()).unwrap().value.handle
}

fn look_up(fs: &Ceph, dir: &Handle, called: &str) -> Result<Node<Disk>> {
    fs.lookup(&root(), dir, name(called)).map(|entry| entry.node)
}

fn write(fs: &Ceph, file: &Handle, data: &[u8]) -> Result<u32> {
    fs.write(&root(), file, 0, data).map(|written| written.value)
}

fn read(fs: &Ceph, file: &Handle) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    fs.read(&root(), file, 0, 100, &mut ReadInto::new(&mut bytes))?;
    Ok(bytes)
}

/// The optional features of this file system.
fn features() -> Needs {
    let missing = [Needs::SEEK, Needs::ALLOCATE, Needs::COPY, Needs::CLONE, Needs::EARLY_TIMES];
    missing.into_iter().fold(Needs::ALL, Needs::without)
}

#[test]
fn conformance() {
    let Some(cluster) = shared_cluster() else { return };
    let fs = open(cluster);
    let mut report = Report::default();
    let is_here = |case: &&Case| NOT_HERE.iter().all(|(name, _)| *name != case.name);
    for case in cases().filter(is_here).filter(|case| features().contains(case.needs)) {
        match Fixture::new(&fs, root(), case.name).and_then(|fixture| (case.run)(&fixture)) {
            Ok(()) => report.passed += 1,
            Err(failure) => report.failed.push((case.name, failure)),
        }
    }
    println!("ceph: {report}");
    assert!(report.failed.is_empty() && report.passed > 200, "ceph: {report}");
}

#[test]
fn handles_outlive_the_mount_and_name_the_same_objects_in_all_exports() {
    let Some(cluster) = shared_cluster() else { return };
    let fs = open(cluster);
    let dir = make_dir(&fs, &fs.root(), "outlive");
    let file = make_file(&fs, &dir, "file");
    write(&fs, &file, b"data").unwrap();
    let volume = fs.volume(&file);
    drop(fs);
    let fs = open(cluster);
    assert_eq!(read(&fs, &file).unwrap(), b"data");
    let below = open_at(cluster, "/outlive");
    assert_eq!((below.root(), below.volume(&file)), (dir, volume));
    assert_eq!(look_up(&below, &dir, "file").unwrap().handle, file);
    let parent = below.parent(&root(), &dir).unwrap();
    assert_eq!(parent.handle, dir, "the root is its own parent");
}

#[test]
fn locks_hold_against_other_clients_of_ceph() {
    let Some(cluster) = shared_cluster() else { return };
    let (fs, other) = (open(cluster), open(cluster));
    let file = make_file(&fs, &fs.root(), "locked");
    let (all, exclusive) = ((0, u64::MAX), RangeLock::Exclusive);
    assert_eq!(fs.hold_range(&file, (2, 5), exclusive), Ok(true));
    assert_eq!(other.hold_range(&file, (5, 5), RangeLock::Shared), Ok(false));
    assert_eq!(other.is_range_free(&file, (0, 3), RangeLock::Shared), Ok(false));
    assert_eq!(other.is_range_free(&file, (6, u64::MAX), exclusive), Ok(true));
    assert_eq!(other.hold_range(&file, (6, u64::MAX), exclusive), Ok(true));
    assert_eq!(fs.hold_range(&file, (0, 6), RangeLock::Shared), Ok(false));
    assert_eq!(fs.hold_range(&file, all, RangeLock::Free), Ok(true));
    assert_eq!(other.hold_range(&file, (0, 9), exclusive), Ok(true));
    assert_eq!(fs.hold_range(&file, (u64::MAX, u64::MAX), exclusive), Err(Status::FBig));
    // Nobody listens for recalls, so no file is held.
    assert_eq!(fs.hold_file(&file, FileHold::Shared), Ok(false));
    assert_eq!(fs.hold_file(&file, FileHold::Free), Ok(true));
}

/// The mount that has taken the locks ends, but they do not: they belong to the volume.
#[test]
fn a_later_mount_does_not_end_the_locks_of_an_earlier_one() {
    let Some(cluster) = shared_cluster() else { return };
    let options = CephOptions { server: Some("one-server"), ..CephOptions::default() };
    let open_one = || open_with(cluster, "/", options.clone());
    let (first, second, other) = (open_one(), open_one(), open(cluster));
    let file = make_file(&first, &first.root(), "locked-by-one");
    assert_eq!(first.hold_range(&file, (0, 9), RangeLock::Exclusive), Ok(true));
    drop(first);
    let third = open_one();
    assert_eq!(other.hold_range(&file, (0, 9), RangeLock::Exclusive), Ok(false));
    assert_eq!(second.hold_range(&file, (20, 29), RangeLock::Exclusive), Ok(true));
    assert_eq!(second.getattr(&file).map(|attr| attr.links), Ok(1), "the second is served");
    drop((second, third));
    assert_eq!(other.hold_range(&file, (0, 9), RangeLock::Exclusive), Ok(true));
}

#[test]
fn a_file_is_written_before_it_is_closed() {
    let Some(cluster) = shared_cluster() else { return };
    let fs = open(cluster);
    let file = make_file(&fs, &fs.root(), "idle");
    write(&fs, &file, b"data").unwrap();
    let vino = fs.vino(&file).unwrap();
    let open = fs.files.get(vino, super::files::FileUse::Write).unwrap();
    fs.close_files(usize::MAX);
    assert!(!open.is_written(), "the barrier came first");
    assert!(fs.files.get(vino, super::files::FileUse::Write).is_some(), "somebody uses it");
    drop(open);
    fs.close_files(usize::MAX);
    assert!(fs.files.get(vino, super::files::FileUse::Write).is_none());
}

#[test]
fn a_cluster_that_does_not_exist_is_refused_with_what_to_do() {
    let Some(_) = shared_cluster() else { return };
    let configuration = Path::new("/nowhere/ceph.conf");
    let options = CephOptions { configuration: Some(configuration), ..CephOptions::default() };
    let refused = Ceph::open(Path::new("/"), options).map(drop).unwrap_err();
    assert!(refused.contains("configuration"), "{refused}");
}

#[test]
fn libcephfs_keeps_a_log_of_its_work_only_if_it_is_configured() {
    let Some(cluster) = shared_cluster() else { return };
    assert!(open(cluster).mount.is_set(c"debug_client", c"0/0"));
    let text = std::fs::read_to_string(cluster.configuration()).unwrap();
    let mut configured = tempfile::NamedTempFile::new().unwrap();
    write!(configured, "{text}[client]\ndebug client = 1/2\n").unwrap();
    let options = CephOptions { configuration: Some(configured.path()), ..CephOptions::default() };
    let fs = Ceph::open(Path::new("/"), options).unwrap();
    assert!(fs.mount.is_set(c"debug_client", c"1/2"));
}

#[test]
fn numbers_that_no_object_has_are_stale() {
    let Some(cluster) = shared_cluster() else { return };
    let fs = open(cluster);
    for ino in [0, 2, 0x600, 0x100_ffff_ffff, u64::MAX] {
        for snapid in [u64::MAX - 1, u64::MAX, 7, 0] {
            let handle = super::handle::encode(fs.volume, Vino { ino, snapid }).unwrap();
            assert_eq!(fs.getattr(&handle).map(drop), Err(Status::Stale), "{ino:x} {snapid:x}");
        }
    }
}

#[test]
fn everybody_may_make_files_in_an_open_directory_that_is_exported() {
    let Some(cluster) = shared_cluster() else { return };
    let fs = open(cluster);
    let set = SetAttr { mode: Some(Mode::new(0o777)), ..SetAttr::default() };
    fs.mkdir(&root(), &fs.root(), name("open"), &set).unwrap();
    let fs = open_at(cluster, "/open");
    let nobody = Cred::new(comity_vfs::Uid::new(65_534), comity_vfs::Gid::new(65_534));
    assert!(fs.mkdir(&nobody, &fs.root(), name("dir"), &set).is_ok());
}
