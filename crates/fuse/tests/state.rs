//! Opens, locks and delegations of a lower layer that keeps them at a server.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use comity_vfs::layers::{Layer, ReadOnly};
use comity_vfs::{
    Create, Cred, Disk, Fs, Gid, Handle, Name, OpenAccess, OpenEvent, SetAttr, Status, Uid,
};
use rustix::fs::{FlockOperation, fcntl_lock, flock};

use common::open_files::WithOpens;
use common::{Fixture, can_mount, kept, memory, mount};

/// The file that a test's child process locks.
const LOCKS: &str = "COMITY_TEST_LOCKS";

fn mounted() -> (Fixture, Arc<WithOpens>) {
    let below = WithOpens::new(memory());
    (mount(below.clone(), kept(Duration::ZERO)), below)
}

fn root() -> Cred<Disk> {
    Cred::new(Uid::new(0), Gid::new(0))
}

fn handle(fs: &dyn Fs, name: &str) -> Handle {
    fs.lookup(&root(), &fs.root(), Name::new(name.as_bytes()).unwrap()).unwrap().node.handle
}

/// Waits until a condition holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let seen = (0..2_000).any(|_| {
        thread::sleep(Duration::from_millis(5));
        holds()
    });
    assert!(seen, "{what}");
}

fn lockable(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

/// This program as another process, which locks a file and prints that.
fn child(path: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child_of_a_test_locks_a_file", "--ignored", "--nocapture"])
        .env(LOCKS, path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "other tests of this file start it as another process"]
fn the_child_of_a_test_locks_a_file() {
    let Some(path) = std::env::var_os(LOCKS) else { panic!("run the tests that start this one") };
    let file = lockable(Path::new(&path));
    let tried = fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive);
    println!("tried: {}", if tried.is_ok() { "locked" } else { "denied" });
    fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
    println!("waited: locked");
    // The lock is held until the parent closes the pipe.
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
}

/// Returns the next line of a child that begins with `start`.
fn line(lines: &mut impl BufRead, start: &str) -> String {
    let mut line = String::new();
    while !line.contains(start) {
        line.clear();
        assert!(lines.read_line(&mut line).unwrap() > 0, "no line {start}");
    }
    line.trim_end().to_owned()
}

#[test]
fn a_process_waits_for_the_lock_of_another() {
    if !can_mount() {
        return;
    }
    let (mounted, _below) = mounted();
    let path = mounted.dir.join("file");
    let file = lockable(&path);
    fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
    let mut child = child(&path);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    assert!(line(&mut lines, "tried").ends_with("denied"));
    fcntl_lock(&file, FlockOperation::Unlock).unwrap();
    line(&mut lines, "waited: locked");
    assert!(fcntl_lock(&file, FlockOperation::NonBlockingLockShared).is_err());
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
    // The locks of a process end with it.
    until("the lock is free", || {
        fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
    });
}

#[test]
fn a_process_that_waits_for_a_lock_can_be_killed() {
    if !can_mount() {
        return;
    }
    let (mounted, below) = mounted();
    let path = mounted.dir.join("file");
    let file = lockable(&path);
    fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
    let mut child = child(&path);
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    line(&mut lines, "tried");
    child.kill().unwrap();
    child.wait().unwrap();
    until("its open is closed", || below.open_count() == 1);
}

#[test]
fn locks_of_flock_are_forwarded_and_end_with_the_file() {
    if !can_mount() {
        return;
    }
    let (mounted, _below) = mounted();
    let path = mounted.dir.join("file");
    let (one, other) = (lockable(&path), lockable(&path));
    flock(&one, FlockOperation::LockExclusive).unwrap();
    assert!(flock(&other, FlockOperation::NonBlockingLockShared).is_err());
    drop(one);
    until("the lock is free", || flock(&other, FlockOperation::NonBlockingLockShared).is_ok());
}

#[test]
fn a_close_makes_written_data_stable_and_is_forwarded() {
    if !can_mount() {
        return;
    }
    let (mounted, below) = mounted();
    let path = mounted.dir.join("file");
    fs::write(&path, "data").unwrap();
    assert_eq!(*below.calls.lock().unwrap(), ["commit"]);
    until("the file is closed", || below.open_count() == 0);
    fs::read(&path).unwrap();
    until("the file is closed again", || below.open_count() == 0);
    assert_eq!(*below.calls.lock().unwrap(), ["commit"], "nothing was written");
}

/// Otherwise the unlock sends the data, and its failure is not reported to the program.
#[test]
fn a_close_commits_before_it_unlocks() {
    if !can_mount() {
        return;
    }
    let (mounted, below) = mounted();
    let mut file = lockable(&mounted.dir.join("file"));
    fcntl_lock(&file, FlockOperation::LockExclusive).unwrap();
    file.write_all(b"data").unwrap();
    *below.commit_failure.lock().unwrap() = Some(Status::NoSpc);
    drop(file);
    assert_eq!(*below.calls.lock().unwrap(), ["commit", "unlock"], "it unlocks all the same");
}

#[test]
fn a_close_reports_that_data_could_not_be_committed() {
    if !can_mount() {
        return;
    }
    let (mounted, below) = mounted();
    *below.commit_failure.lock().unwrap() = Some(Status::NoSpc);
    let copy = || {
        let mut dd = Command::new("dd");
        dd.arg("if=/etc/passwd").arg(format!("of={}", mounted.dir.join("file").display()));
        dd.output().unwrap().status.success()
    };
    assert!(!copy());
    assert!(copy());
}

#[test]
fn a_close_after_one_that_failed_commits_again() {
    if !can_mount() {
        return;
    }
    let (mounted, below) = mounted();
    let mut file = lockable(&mounted.dir.join("file"));
    file.write_all(b"data").unwrap();
    let other = file.try_clone().unwrap();
    *below.commit_failure.lock().unwrap() = Some(Status::Io);
    drop(file);
    drop(other);
    assert_eq!(*below.calls.lock().unwrap(), ["commit", "commit"]);
}

#[test]
fn the_kernels_cache_of_a_delegated_file_is_dropped_before_the_delegation() {
    if !can_mount() {
        return;
    }
    let (mounted, below) = mounted();
    let path = mounted.dir.join("file");
    fs::write(&path, "one").unwrap();
    let node = handle(below.as_ref(), "file");
    below.delegated.lock().unwrap().push(node);
    let file = File::open(&path).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    // A read makes the kernel forget the access time, and with that the attributes.
    assert_eq!(file.metadata().unwrap().len(), 3);
    below.write(&root(), &node, 0, b"two and more").unwrap();
    assert_eq!(file.metadata().unwrap().len(), 3, "the attributes are kept");
    below.events.lock().unwrap().push_back(OpenEvent::Recalled { node, is_truncated: false });
    until("the delegation is returned", || {
        below.calls.lock().unwrap().contains(&"return_delegation")
    });
    assert_eq!(file.metadata().unwrap().len(), 12);
    assert_eq!(std::io::read_to_string(&file).unwrap(), "two and more");
}

/// In libfuse (issue 341) and hf-mount (156) processes hung for good this way.
#[test]
fn recalls_while_a_file_is_read_do_not_hang() {
    if !can_mount() {
        return;
    }
    let (mounted, below) = mounted();
    let path = mounted.dir.join("file");
    fs::write(&path, vec![1; 4 << 20]).unwrap();
    let node = handle(below.as_ref(), "file");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..30).for_each(|_| drop(fs::read(&path).unwrap()))))
            .collect();
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let event = OpenEvent::Recalled { node, is_truncated: false };
                below.events.lock().unwrap().push_back(event);
                thread::sleep(Duration::from_millis(1));
            }
        });
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        done.store(true, Ordering::Release);
    });
}

#[test]
fn a_read_only_layer_neither_makes_files_nor_opens_them_for_writing() {
    let below = WithOpens::new(memory());
    let name = |text: &'static str| Name::new(text.as_bytes()).unwrap();
    let (root, dir) = (root(), below.root());
    let how = Create::Guarded(SetAttr::default());
    let file = below.create(&root, &dir, name("file"), &how).unwrap().value.handle;
    let layer = Layer::new(below.clone(), ReadOnly);
    let files = layer.open_files().unwrap();
    let made = files.open_name(&root, (&dir, name("new")), OpenAccess::Read, Some(&how));
    assert_eq!(made.map(|made| made.value.handle), Err(Status::RoFs));
    assert_eq!(files.open(&root, &file, None, OpenAccess::Both), Err(Status::RoFs));
    let opened = files.open_name(&root, (&dir, name("file")), OpenAccess::Read, None);
    assert_eq!(opened.unwrap().value.handle, file);
}
