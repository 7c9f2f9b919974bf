//! Objects outside a served folder cannot be reached, and a process at its limits keeps working.
#![allow(clippy::unwrap_used)]

mod common;

use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use comity_backend::{Descriptors, Passthrough, PassthroughOptions};
use comity_vfs::{Fs, Handle, Listed, Status};
use common::{caller, is_root, list, mode, name, open, read, root, serve, set_mode};

#[test]
fn the_roots_parent_is_the_root() {
    let served = serve();
    let above = served.fs.parent(&root(), &served.root()).unwrap();
    assert_eq!(above.handle, served.root());
    let dir = served.mkdir(&root(), "dir", 0o755).unwrap();
    assert_eq!(served.fs.parent(&root(), &dir.handle).unwrap().handle, served.root());
}

#[test]
fn a_directory_moved_out_has_no_parent_here() {
    let served = serve();
    let outside = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let dir = served.mkdir(&root(), "dir", 0o755).unwrap();
    let inner = served.fs.mkdir(&root(), &dir.handle, name(b"inner"), &mode(0o755)).unwrap().value;
    std::fs::rename(served.folder.path().join("dir"), outside.path().join("dir")).unwrap();
    let outside_fileid = open(outside.path()).getattr(&open(outside.path()).root()).unwrap().fileid;
    for fs in [&served.fs, &open(served.folder.path())] {
        assert_eq!(fs.parent(&root(), &dir.handle), Err(Status::Stale));
        if let Ok(above) = fs.parent(&root(), &inner.handle) {
            assert_ne!(above.attr.fileid, outside_fileid);
        }
    }
}

#[test]
fn links_are_never_followed() {
    let served = serve();
    symlink("/", served.folder.path().join("out")).unwrap();
    symlink("/etc/passwd", served.folder.path().join("file")).unwrap();
    let out = served.lookup(&root(), "out").unwrap();
    let found = served.fs.lookup(&root(), &out.handle, name(b"etc"));
    assert_eq!(found.unwrap_err(), Status::NotDir);
    let file = served.lookup(&root(), "file").unwrap();
    assert_eq!(read(&served.fs, &root(), &file.handle, 0, 9), Err(Status::Inval));
    let how = comity_vfs::Create::Unchecked(mode(0o600));
    let made = served.fs.create(&root(), &served.root(), name(b"file"), &how);
    assert_eq!(made.unwrap_err(), Status::Exist);
}

#[test]
fn a_name_swapped_for_a_link_never_leads_out() {
    let served = serve();
    let path = served.folder.path();
    std::fs::create_dir(path.join("real")).unwrap();
    symlink("/etc", path.join("link")).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let flags = rustix::fs::RenameFlags::EXCHANGE;
                let (one, other) = (path.join("real"), path.join("link"));
                rustix::fs::renameat_with(rustix::fs::CWD, &one, rustix::fs::CWD, &other, flags)
                    .unwrap();
            }
        });
        for _ in 0..3_000 {
            let dir = served.lookup(&root(), "real").unwrap();
            let found = served.fs.lookup(&root(), &dir.handle, name(b"passwd"));
            assert!(matches!(found, Err(Status::NoEnt | Status::NotDir)), "{found:?}");
            let how = comity_vfs::Create::Unchecked(mode(0o600));
            let made = served.fs.create(&root(), &dir.handle, name(b"comity-test"), &how);
            assert!(!Path::new("/etc/comity-test").exists());
            assert!(matches!(made, Ok(_) | Err(Status::NotDir)), "{made:?}");
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_forged_handle_is_refused() {
    let served = serve();
    let file = served.create(&root(), "file", 0o644).unwrap();
    let good = file.handle.bytes();
    let mut forged: Vec<Vec<u8>> = (1..=48).map(|length| vec![0xa5; length]).collect();
    forged.extend((1..good.len()).map(|length| good[..length].to_vec()));
    forged.extend((0..=255).map(|kind| [&good[..4], &[0, kind], &[1; 40]].concat()));
    forged.push([good, &[0; 8]].concat());
    for bytes in forged {
        let handle = Handle::new(&bytes).unwrap();
        let refused = served.fs.getattr(&handle);
        let ours = matches!(refused, Err(Status::BadHandle | Status::Stale | Status::Delay));
        assert!(ours || refused.is_ok_and(|attr| attr.fileid == file.attr.fileid), "{bytes:?}");
        let _ = served.fs.lookup(&root(), &handle, name(b"x"));
        let _ = served.fs.commit(&handle);
    }
}

#[test]
fn few_descriptors_are_enough_for_many_files() {
    let served = serve();
    let fs = sharing(&served, &Descriptors::at_most(64));
    let handles = write_many(&fs, "file", 500);
    for (number, handle) in handles.iter().enumerate() {
        let bytes = read(&fs, &root(), handle, 0, 9).unwrap().0;
        assert_eq!(bytes, number.to_string().as_bytes());
    }
    let open_now = open_files("file");
    assert!(open_now <= 70, "{open_now} descriptors");
}

#[test]
fn exports_share_the_descriptors_of_the_process() {
    let (all, folders) = (Descriptors::at_most(600), [serve(), serve()]);
    let [first, second] = folders.each_ref().map(|served| sharing(served, &all));
    write_many(&first, "first", 500);
    let of_first = open_files("first");
    assert!(of_first > 300, "{of_first}: one that is alone may have more than half");
    write_many(&second, "second", 500);
    write_many(&first, "first", 10);
    let open = ["first", "second"].map(open_files);
    assert!(open.iter().sum::<usize>() <= 610, "{open:?}");
    assert!(open.iter().all(|open| *open >= 150), "{open:?}: both have a part");
}

/// A folder served with these descriptors.
fn sharing(served: &common::Served, descriptors: &Descriptors) -> Passthrough {
    let descriptors = Some(descriptors.clone());
    let options = PassthroughOptions { descriptors, ..Default::default() };
    Passthrough::open(served.folder.path(), options).unwrap()
}

/// Makes `count` files; each holds its number.
fn write_many(fs: &Passthrough, kind: &str, count: u32) -> Vec<Handle> {
    (0..count)
        .map(|number| {
            let how = comity_vfs::Create::Unchecked(mode(0o644));
            let name = format!("{kind}-{number}");
            let name = self::name(name.as_bytes());
            let file = fs.create(&root(), &fs.root(), name, &how).unwrap().value;
            fs.write(&root(), &file.handle, 0, number.to_string().as_bytes()).unwrap();
            file.handle
        })
        .collect()
}

/// The number of descriptors of this process that are open on files of one kind.
fn open_files(kind: &str) -> usize {
    let name = format!("/{kind}-");
    std::fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok())
        .filter(|target| target.to_string_lossy().contains(&name))
        .count()
}

/// Runs in a process of its own, because the limit holds for a whole process.
#[test]
fn a_process_without_descriptors_goes_on() {
    const CHILD: &str = "COMITY_TEST_FEW_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let program = std::env::current_exe().unwrap();
        let status = std::process::Command::new(program)
            .args(["--exact", "a_process_without_descriptors_goes_on", "--test-threads", "1"])
            .env(CHILD, "1")
            .status()
            .unwrap();
        assert!(status.success());
        return;
    }
    let served = serve();
    let files = (0..300).map(|number| format!("file-{number}"));
    let handles: Vec<Handle> = files
        .map(|file| {
            std::fs::write(served.folder.path().join(&file), b"data").unwrap();
            served.lookup(&root(), &file).unwrap().handle
        })
        .collect();
    use rustix::process::{Resource, Rlimit, setrlimit};
    setrlimit(Resource::Nofile, Rlimit { current: Some(330), maximum: Some(330) }).unwrap();
    for handle in &handles {
        let found = read(&served.fs, &root(), handle, 0, 9);
        assert!(matches!(&found, Ok((bytes, _)) if bytes == b"data"), "{found:?}");
    }
    // With no descriptor left, calls are answered with `Delay`; they succeed again after some are
    // closed.
    let mut taken = Vec::new();
    while let Ok(file) = std::fs::File::open("/dev/null") {
        taken.push(file);
    }
    let outcome = open_all(&served.fs, &handles);
    assert!(outcome.iter().all(|one| matches!(one, Ok(()) | Err(Status::Delay))), "{outcome:?}");
    drop(taken);
    assert!(open_all(&served.fs, &handles).iter().all(Result::is_ok));
}

fn open_all(fs: &Passthrough, handles: &[Handle]) -> Vec<Result<(), Status>> {
    handles.iter().map(|handle| read(fs, &root(), handle, 0, 1).map(drop)).collect()
}

/// Runs `work` in a mount namespace of its own.
fn with_mounts(work: impl FnOnce(&Path) + Send) {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path();
    let run = || {
        // SAFETY: this thread has opened nothing that the new namespace could take away.
        #[allow(unsafe_code)]
        unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.unwrap();
        let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
        mount_change("/", private).unwrap();
        std::fs::create_dir_all(path.join("a/covered")).unwrap();
        std::fs::write(path.join("a/covered/below"), b"below").unwrap();
        mount("none", path.join("a/covered"), "tmpfs", MountFlags::empty(), None).unwrap();
        std::fs::write(path.join("a/covered/above"), b"above").unwrap();
        work(path);
    };
    std::thread::scope(|scope| scope.spawn(run).join()).unwrap();
}

#[test]
fn without_crossing_the_covered_directory_shows() {
    with_mounts(|path| {
        let fs = open(path);
        let a = fs.lookup(&root(), &fs.root(), name(b"a")).unwrap().node;
        let covered = fs.lookup(&root(), &a.handle, name(b"covered")).unwrap().node;
        assert_eq!(covered.attr.fsid, a.attr.fsid);
        assert!(fs.lookup(&root(), &covered.handle, name(b"below")).is_ok());
        let found = fs.lookup(&root(), &covered.handle, name(b"above"));
        assert_eq!(found.unwrap_err(), Status::NoEnt);
    });
}

#[test]
fn with_crossing_the_mounted_root_shows() {
    with_mounts(|path| {
        let options = PassthroughOptions { cross_mounts: true, ..Default::default() };
        let fs = Passthrough::open(path, options).unwrap();
        let a = fs.lookup(&root(), &fs.root(), name(b"a")).unwrap().node;
        let mounted = fs.lookup(&root(), &a.handle, name(b"covered")).unwrap().node;
        assert_ne!(mounted.attr.fsid, a.attr.fsid);
        let file = fs.lookup(&root(), &mounted.handle, name(b"above")).unwrap().node;
        assert_eq!(read(&fs, &root(), &file.handle, 0, 9).unwrap().0, b"above");
        assert_eq!(fs.parent(&root(), &mounted.handle).unwrap().handle, a.handle);
        let listed = list(&fs, &root(), &a.handle, 0, 9).unwrap();
        assert_eq!(listed[0].2.map(|node| node.handle), Some(mounted.handle));
        let moved =
            fs.rename(&root(), (&mounted.handle, name(b"above")), (&a.handle, name(b"above")));
        assert_eq!(moved, Err(Status::XDev));
    });
}

#[test]
fn a_later_mount_is_seen_and_an_unmounted_one_is_gone() {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
    with_mounts(|path| {
        let options = PassthroughOptions { cross_mounts: true, ..Default::default() };
        let fs = Passthrough::open(path, options).unwrap();
        let a = fs.lookup(&root(), &fs.root(), name(b"a")).unwrap().node;
        let first = fs.lookup(&root(), &a.handle, name(b"covered")).unwrap().node;
        std::fs::create_dir(path.join("later")).unwrap();
        mount("none", path.join("later"), "tmpfs", MountFlags::empty(), None).unwrap();
        unmount(path.join("a/covered"), UnmountFlags::empty()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1_100));
        let later = fs.lookup(&root(), &fs.root(), name(b"later")).unwrap().node;
        assert_ne!(later.attr.fsid, a.attr.fsid);
        let covered = fs.lookup(&root(), &a.handle, name(b"covered")).unwrap().node;
        assert_eq!(covered.attr.fsid, a.attr.fsid);
        assert_eq!(fs.getattr(&first.handle), Err(Status::Stale));
    });
}

#[test]
fn a_mounted_root_is_reached_by_those_only_who_may_search_the_directory() {
    with_mounts(|path| {
        let options = PassthroughOptions { cross_mounts: true, ..Default::default() };
        let fs = Passthrough::open(path, options).unwrap();
        let stranger = caller(1000, 1000);
        set_mode(&path.join("a"), 0o700);
        let a = fs.lookup(&root(), &fs.root(), name(b"a")).unwrap().node;
        let mounted = fs.lookup(&root(), &a.handle, name(b"covered")).unwrap().node;
        let found = fs.lookup(&stranger, &a.handle, name(b"covered"));
        assert_eq!(found.unwrap_err(), Status::Acces);
        fs.release_identity().unwrap();
        set_mode(&path.join("a/covered"), 0o700);
        assert_eq!(fs.parent(&stranger, &mounted.handle), Err(Status::Acces));
        fs.release_identity().unwrap();
    });
}

#[test]
fn a_cookie_from_nowhere_does_no_harm() {
    let served = serve();
    served.create(&root(), "file", 0o644).unwrap();
    for cookie in [1, 77, u64::from(u32::MAX), u64::MAX >> 1, u64::MAX] {
        let _ = served.fs.readdir(&root(), &served.root(), cookie, Listed::Names, &mut |_| {
            ControlFlow::Continue(())
        });
    }
    assert_eq!(list(&served.fs, &root(), &served.root(), 0, 9).unwrap().len(), 1);
}
