//! A folder that is served without privilege. Each test runs this program again as nobody, because
//! a process that has been root keeps some of its rights.
#![allow(clippy::unwrap_used)]

mod common;

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use comity_backend::{LeaseWatch, Passthrough, PassthroughOptions};
use comity_vfs::{AsServer, FileHold, Fs, LocalLocks, LocalUse, Result, Status};
use common::{caller, list, mode, name, open, read, root, serve, set_mode};

const NOBODY: u32 = 65_534;
const CHILD: &str = "COMITY_TEST_AS_NOBODY";

/// Runs `work` as an ordinary user.
fn as_nobody(test: &str, work: fn()) {
    if std::env::var_os(CHILD).is_some() || !rustix::process::geteuid().is_root() {
        return work();
    }
    // Other users may have no access to the build folder.
    let folder = tempfile::tempdir().unwrap();
    set_mode(folder.path(), 0o777);
    let program = folder.path().join("test");
    // Another program makes the copy. If this process wrote it, a child that another test starts
    // meanwhile would inherit the descriptor, and a file that is open for writing cannot be run.
    let here = std::env::current_exe().unwrap();
    assert!(Command::new("cp").args([&here, &program]).status().unwrap().success());
    set_mode(&program, 0o755);
    let output = Command::new(program)
        .args(["--exact", test, "--nocapture"])
        .current_dir("/")
        .env(CHILD, folder.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Repeats a call while it is answered with `Delay`: searches of the tree are limited in rate.
fn patiently<T>(verb: impl Fn() -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        match verb() {
            Err(Status::Delay) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            outcome => return outcome,
        }
    }
}

#[test]
fn it_says_what_it_cannot_do() {
    as_nobody("it_says_what_it_cannot_do", || {
        let served = serve();
        let capabilities = served.fs.capabilities();
        assert!(!capabilities.kernel_handles && !capabilities.caller_identities);
        let sentences: Vec<_> = capabilities.shortcomings().collect();
        assert!(sentences.len() >= 3, "{sentences:?}");
    });
}

#[test]
fn handles_outlive_renames_by_others_and_restarts() {
    as_nobody("handles_outlive_renames_by_others_and_restarts", || {
        let served = serve();
        let dir = served.mkdir(&root(), "dir", 0o755).unwrap();
        let how = comity_vfs::Create::Guarded(mode(0o644));
        let file = served.fs.create(&root(), &dir.handle, name(b"file"), &how).unwrap().value;
        served.fs.write(&root(), &file.handle, 0, b"data").unwrap();
        let path = served.folder.path();
        std::fs::create_dir(path.join("other")).unwrap();
        std::fs::rename(path.join("dir/file"), path.join("other/moved")).unwrap();
        std::fs::rename(path.join("dir"), path.join("other/dir")).unwrap();
        for fs in [&served.fs, &open(path)] {
            for handle in [&file.handle, &dir.handle] {
                patiently(|| fs.getattr(handle)).unwrap();
            }
            assert_eq!(read(fs, &root(), &file.handle, 0, 9).unwrap().0, b"data");
            assert_eq!(list(fs, &root(), &dir.handle, 0, 9).unwrap().len(), 0);
            let above = fs.parent(&root(), &dir.handle).unwrap();
            assert!(fs.lookup(&root(), &above.handle, name(b"moved")).is_ok());
        }
    });
}

#[test]
fn a_file_removed_by_others_is_stale_in_the_end() {
    as_nobody("a_file_removed_by_others_is_stale_in_the_end", || {
        let served = serve();
        let file = served.create(&root(), "file", 0o644).unwrap();
        let again = open(served.folder.path());
        std::fs::remove_file(served.folder.path().join("file")).unwrap();
        for fs in [&served.fs, &again] {
            assert_eq!(patiently(|| fs.getattr(&file.handle)), Err(Status::Stale));
        }
    });
}

#[test]
fn a_directory_moved_out_has_no_parent() {
    as_nobody("a_directory_moved_out_has_no_parent", || {
        let served = serve();
        let outside = serve();
        let dir = served.mkdir(&root(), "dir", 0o755).unwrap();
        let path = outside.folder.path().join("dir");
        std::fs::rename(served.folder.path().join("dir"), path).unwrap();
        assert_eq!(served.fs.parent(&root(), &dir.handle), Err(Status::Stale));
    });
}

#[test]
fn all_callers_have_the_servers_rights() {
    as_nobody("all_callers_have_the_servers_rights", || {
        let served = serve();
        let file = served.create(&caller(5, 5), "file", 0o600).unwrap();
        assert_eq!(file.attr.uid.number(), rustix::process::geteuid().as_raw());
        served.fs.write(&caller(6, 6), &file.handle, 0, b"data").unwrap();
        assert_eq!(read(&served.fs, &caller(7, 7), &file.handle, 0, 9).unwrap().0, b"data");
    });
}

#[test]
fn only_files_of_the_server_user_are_leased() {
    as_nobody("only_files_of_the_server_user_are_leased", || {
        let watch = Arc::<LeaseWatch>::default();
        let _listener = watch.listen(&AsServer::here().unwrap()).unwrap();
        let open = |path: &Path| {
            let leases = Some(Arc::clone(&watch));
            let options = PassthroughOptions { leases, ..PassthroughOptions::default() };
            Passthrough::open(path, options).unwrap()
        };
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("passwd"), "").unwrap();
        let hold = |path: &Path| {
            let fs = open(path);
            let file = fs.lookup(&root(), &fs.root(), name(b"passwd")).unwrap().node.handle;
            LocalLocks::hold_file(&fs, &file, FileHold::Shared)
        };
        assert_eq!(hold(folder.path()), Ok(true));
        assert_eq!(hold(Path::new("/etc")), Ok(false));
        let sentences: Vec<_> = open(folder.path()).capabilities().shortcomings().collect();
        assert!(sentences.iter().any(|sentence| sentence.contains("CAP_LEASE")), "{sentences:?}");
    });
}

/// An ordinary user can mark files, too, but is not told which process changed a file.
#[test]
fn programs_that_change_its_own_files_are_told_of() {
    as_nobody("programs_that_change_its_own_files_are_told_of", || {
        let watch = Arc::<LeaseWatch>::default();
        let listener = watch.listen(&AsServer::here().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let options = PassthroughOptions { leases: Some(watch), ..PassthroughOptions::default() };
        let fs = Passthrough::open(folder.path(), options).unwrap();
        let file = fs.lookup(&root(), &fs.root(), name(b"file")).unwrap().node.handle;
        assert_eq!(LocalLocks::hold_file(&fs, &file, FileHold::Exclusive), Ok(true));
        fs.setattr(&root(), &file, &mode(0o600), None).unwrap();
        let mut program = std::process::Command::new("chmod");
        assert!(program.arg("644").arg(folder.path().join("file")).status().unwrap().success());
        let (end, ended) = std::os::unix::net::UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_secs(10));
            drop(end);
        });
        assert_eq!(listener.wait(std::os::fd::AsFd::as_fd(&ended)), Ok(true));
        assert_eq!(LocalLocks::poll_wanted(&fs), Some((file, LocalUse::Change)));
        assert_eq!(LocalLocks::poll_wanted(&fs), None);
    });
}
