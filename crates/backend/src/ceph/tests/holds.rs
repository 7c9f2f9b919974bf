//! Files held against other clients of Ceph.

use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

use comity_vfs::{AsServer, LocalUse};

use super::super::ffi::CephFile;
use super::*;
use crate::{CephSiblings, LeaseListener, LeaseWatch};

/// Attempts to have one hold begin while another one ends.
const ROUNDS: usize = 1_000;

/// A file system whose recalls are heard by this thread, and another client of the same cluster.
struct Site {
    fs: Ceph,
    other: Ceph,
    listener: LeaseListener,
    _end: UnixStream,
    ended: UnixStream,
}

impl Site {
    fn new(cluster: &CephCluster) -> Self {
        let watch = Arc::<LeaseWatch>::default();
        let listener = watch.listen(&AsServer::here().unwrap()).unwrap();
        let (_end, ended) = UnixStream::pair().unwrap();
        let fs = open_watched(cluster, CephSiblings::default(), &watch);
        Self { fs, other: open(cluster), listener, _end, ended }
    }

    /// A new file that is held.
    fn held(&self, called: &str) -> Handle {
        let file = make_file(&self.fs, &self.fs.root(), called);
        write(&self.fs, &file, b"old").unwrap();
        self.fs.commit(&file).unwrap();
        assert_eq!(self.fs.hold_file(&file, FileHold::Shared), Ok(true), "{called}");
        file
    }
}

fn open_watched(cluster: &CephCluster, siblings: CephSiblings, watch: &Arc<LeaseWatch>) -> Ceph {
    let configuration = cluster.configuration();
    let (configuration, leases) = (Some(&*configuration), Some(Arc::clone(watch)));
    let options = CephOptions { configuration, leases, siblings, ..CephOptions::default() };
    Ceph::open(Path::new("/"), options).unwrap()
}

#[test]
fn another_client_waits_until_a_held_file_is_given_back() {
    let Some(cluster) = shared_cluster() else { return };
    let site = Site::new(cluster);
    let file = site.held("waited-for");
    assert_eq!(site.fs.hold_file(&file, FileHold::Shared), Ok(true), "it stands");
    assert_eq!(read(&site.fs, &file).unwrap(), b"old", "the server itself may read it");
    assert_eq!(site.fs.poll_wanted(), None);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&site.other, &file, b"new"));
        assert_eq!(site.listener.wait(site.ended.as_fd()), Ok(true));
        let wanted = Some((file, LocalUse::OpenWithin(Duration::from_secs(45))));
        assert_eq!((site.fs.poll_wanted(), site.fs.poll_wanted()), (wanted, None));
        assert_eq!(site.fs.hold_file(&file, FileHold::Shared), Ok(false), "it is wanted");
        assert!(!writer.is_finished(), "the other client does not wait");
        assert_eq!(site.fs.hold_file(&file, FileHold::Free), Ok(true));
        assert_eq!(writer.join().unwrap(), Ok(3));
    });
    assert_eq!(read(&site.fs, &file).unwrap(), b"new");
}

#[test]
fn a_held_file_is_given_back_in_time_even_if_nobody_asks_for_it() {
    let Some(cluster) = shared_cluster() else { return };
    let mut site = Site::new(cluster);
    let file = site.held("late");
    site.fs.holds.wait = Duration::ZERO;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write(&site.other, &file, b"new"));
        assert_eq!(site.listener.wait(site.ended.as_fd()), Ok(true));
        site.fs.release_removed();
        assert_eq!(writer.join().unwrap(), Ok(3));
        let wanted = Some((file, LocalUse::Change));
        assert_eq!((site.fs.poll_wanted(), site.fs.poll_wanted()), (wanted, None));
        assert_eq!(site.listener.wait(site.ended.as_fd()), Ok(true));
    });
    assert_eq!(read(&site.fs, &file).unwrap(), b"new", "the mount goes on");
}

/// Ceph gives a file to others when it has had no word of a client for this long, and libcephfs
/// does not recall it.
#[test]
fn a_held_file_is_wanted_when_the_metadata_server_is_silent_for_long() {
    let Some(cluster) = CephCluster::start() else {
        return println!("skipped: {}", cluster::NEEDED);
    };
    cluster.command(&["fs", "set", "cephfs", "session_timeout", "30"]);
    let site = Site::new(&cluster);
    let file = site.held("silent");
    cluster.signal_metadata_server("STOP");
    site.fs.end_late_holds();
    assert_eq!(site.fs.hold_file(&file, FileHold::Shared), Ok(true), "it stands");
    let (begun, mut wanted) = (Instant::now(), None);
    while wanted.is_none() && begun.elapsed() < Duration::from_secs(40) {
        std::thread::sleep(Duration::from_millis(100));
        site.fs.end_late_holds();
        wanted = site.fs.poll_wanted();
    }
    cluster.signal_metadata_server("CONT");
    assert_eq!(wanted, Some((file, LocalUse::Change)));
    assert_eq!(site.listener.wait(site.ended.as_fd()), Ok(true));
    wait_until(|| site.fs.hold_file(&file, FileHold::Shared) == Ok(true));
}

/// libcephfs has one delegation for each open file, so a hold that begins while another one ends
/// could end with it. An open for writing recalls the delegation if there is one.
#[test]
fn a_hold_that_begins_while_another_one_ends_stands() {
    let Some(cluster) = shared_cluster() else { return };
    let site = Site::new(cluster);
    let fs = &site.fs;
    let file = site.held("again");
    let vino = fs.vino(&file).unwrap();
    let begin = || fs.hold_file(&file, FileHold::Shared) == Ok(true);
    for round in 0..ROUNDS {
        std::thread::scope(|scope| {
            let end = scope.spawn(|| fs.hold_file(&file, FileHold::Free));
            while !end.is_finished() {
                begin();
            }
        });
        wait_until(begin);
        std::thread::scope(|scope| {
            let open = scope.spawn(|| {
                let inode = fs.inode(vino).unwrap();
                CephFile::open(&fs.mount, &inode, libc::O_RDWR).map(drop)
            });
            wait_until(|| open.is_finished() || fs.poll_wanted().is_some());
            let is_held = !open.is_finished();
            fs.hold_file(&file, FileHold::Free).unwrap();
            open.join().unwrap().unwrap();
            assert!(is_held, "nothing was recalled in round {round}");
        });
        wait_until(begin);
    }
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never is");
        std::thread::yield_now();
    }
}

/// libcephfs would block each of these changes until the file is given back.
#[test]
fn a_change_through_the_server_ends_the_hold_and_is_reported() {
    let Some(cluster) = shared_cluster() else { return };
    let site = Site::new(cluster);
    let (fs, root_dir) = (&site.fs, site.fs.root());
    let cut = SetAttr { size: Some(1), ..SetAttr::default() };
    let unchecked = Create::Unchecked(cut);
    type Work<'w> = &'w dyn Fn(&Handle) -> Result<()>;
    let cases: [(&str, Work<'_>); 8] = [
        ("write", &|file| write(fs, file, b"new").map(drop)),
        ("cut", &|file| fs.setattr(&root(), file, &cut, None).map(drop)),
        ("emptied", &|_| fs.create(&root(), &root_dir, name("emptied"), &unchecked).map(drop)),
        ("tagged", &|file| {
            let value = Some(&b"value"[..]);
            let mode = comity_vfs::XattrMode::Either;
            fs.setxattr(&root(), file, name("tag"), value, mode).map(drop)
        }),
        ("locked-held", &|file| {
            assert_eq!(fs.is_range_free(file, (0, 1), RangeLock::Exclusive), Ok(true));
            assert!(fs.holds.has(fs.vino(file).unwrap()), "looking for locks changes nothing");
            fs.hold_range(file, (0, 1), RangeLock::Exclusive).map(drop)
        }),
        ("linked", &|file| fs.link(&root(), file, &root_dir, name("twin")).map(drop)),
        ("renamed", &|_| {
            let names = ((&root_dir, name("renamed")), (&root_dir, name("other-name")));
            fs.rename(&root(), names.0, names.1).map(drop)
        }),
        ("removed", &|_| fs.remove(&root(), &root_dir, name("removed")).map(drop)),
    ];
    for (called, work) in cases {
        let file = site.held(called);
        assert_eq!(work(&file), Ok(()), "{called}");
        assert_eq!(site.listener.wait(site.ended.as_fd()), Ok(true));
        assert_eq!(fs.poll_wanted(), Some((file, LocalUse::Change)), "{called}");
        assert!(!fs.holds.has(fs.vino(&file).unwrap()), "{called}");
    }
}

#[test]
fn only_a_file_that_nobody_writes_is_held_and_only_against_changes() {
    let Some(cluster) = shared_cluster() else { return };
    let site = Site::new(cluster);
    let file = make_file(&site.fs, &site.fs.root(), "written");
    write(&site.fs, &file, b"data").unwrap();
    assert_eq!(site.fs.hold_file(&file, FileHold::Shared), Ok(false), "its data is not stable");
    site.fs.commit(&file).unwrap();
    let vino = site.fs.vino(&file).unwrap();
    let used = site.fs.files.get(vino, super::super::files::FileUse::Write);
    assert_eq!(site.fs.hold_file(&file, FileHold::Shared), Ok(false), "it is being written");
    drop(used);
    assert_eq!(site.fs.hold_file(&file, FileHold::Exclusive), Ok(false));
    assert_eq!(site.fs.hold_file(&file, FileHold::Shared), Ok(true));
    assert_eq!(site.fs.hold_file(&site.fs.root(), FileHold::Shared), Ok(false));
}

#[test]
fn nothing_is_held_beside_another_mount_of_the_same_process() {
    let Some(cluster) = shared_cluster() else { return };
    let (watch, siblings) = (Arc::<LeaseWatch>::default(), CephSiblings::default());
    let fs = open_watched(cluster, siblings.clone(), &watch);
    let file = make_file(&fs, &fs.root(), "in-two-exports");
    assert_eq!(fs.hold_file(&file, FileHold::Shared), Ok(false), "nobody listens");
    let _listener = watch.listen(&AsServer::here().unwrap()).unwrap();
    let second = open_watched(cluster, siblings, &watch);
    assert_eq!(fs.hold_file(&file, FileHold::Shared), Ok(false));
    drop(second);
    assert_eq!(fs.hold_file(&file, FileHold::Shared), Ok(true));
}
