//! Programs on the server and clients see each other's locks and opens.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs::{self, File, OpenOptions, Permissions};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use comity_backend::range_lock::{self, Kind};
use comity_proto::nfs4::{NfsLockType4, Nfsstat4, Stateid4, share};
use common::four::{Four, Opened};
use common::raw::stream_from;
use common::{NOBODY, PATIENCE, Place, Running, comity, run, wait_until};
use rustix::fs::{FlockOperation, fcntl_lock};
use rustix::io::Errno;

/// A server folder whose data everybody may change, and a file in it.
fn place() -> (Place, PathBuf) {
    let place = Place::new();
    fs::set_permissions(place.data(), Permissions::from_mode(0o777)).unwrap();
    let path = place.data().join("file");
    fs::write(&path, "shared by programs and clients").unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    (place, path)
}

/// An open of the file by a program on the server.
fn program(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

fn client(server: &Running, path: &Path, name: &str) -> (Four, Opened) {
    let mut client = Four::connect(server.port, NOBODY, name);
    let file = client.open(path, share::BOTH | share::WANT_NO_DELEG).unwrap();
    (client, file)
}

const EXCLUSIVE: FlockOperation = FlockOperation::NonBlockingLockExclusive;
const SHARED: FlockOperation = FlockOperation::NonBlockingLockShared;
const FREE: FlockOperation = FlockOperation::Unlock;

#[test]
fn a_client_is_denied_what_a_program_has_locked() {
    let (place, path) = place();
    let server = Running::start(&mut place.serve_data());
    let (mut client, file) = client(&server, &path, "one");
    let program = program(&path);
    fcntl_lock(&program, EXCLUSIVE).unwrap();
    assert_eq!(client.lock(&file, NfsLockType4::Read, (3, 4)), Err(Nfsstat4::Denied));
    fcntl_lock(&program, SHARED).unwrap();
    assert_eq!(client.lock(&file, NfsLockType4::Write, (3, 4)), Err(Nfsstat4::Denied));
    let read = client.lock(&file, NfsLockType4::Read, (3, 4)).unwrap();
    fcntl_lock(&program, FREE).unwrap();
    client.unlock(&file, read, (3, 4)).unwrap();
}

#[test]
fn a_program_is_denied_what_a_client_has_locked() {
    let (place, path) = place();
    let server = Running::start(&mut place.serve_data());
    let (mut one, file) = client(&server, &path, "one");
    let (mut two, same) = client(&server, &path, "two");
    let program = program(&path);
    let first = one.lock(&file, NfsLockType4::Read, (0, 10)).unwrap();
    let second = two.lock(&same, NfsLockType4::Read, (5, 10)).unwrap();
    assert_eq!(fcntl_lock(&program, EXCLUSIVE), Err(Errno::AGAIN));
    fcntl_lock(&program, SHARED).unwrap();
    fcntl_lock(&program, FREE).unwrap();
    one.unlock(&file, first, (0, 10)).unwrap();
    assert_eq!(fcntl_lock(&program, EXCLUSIVE), Err(Errno::AGAIN), "the other client still reads");
    two.unlock(&same, second, (0, 10)).unwrap();
    assert_eq!(fcntl_lock(&program, EXCLUSIVE), Err(Errno::AGAIN), "five bytes are left");
    two.unlock(&same, second_of(second), (10, 5)).unwrap();
    fcntl_lock(&program, EXCLUSIVE).unwrap();
}

/// The stateid with seqid 0, which stands for its newest version.
fn second_of(stateid: comity_proto::nfs4::Stateid4) -> comity_proto::nfs4::Stateid4 {
    comity_proto::nfs4::Stateid4 { seqid: 0, ..stateid }
}

/// A lock that is denied because of another client must not stay locked against programs.
#[test]
fn a_denied_lock_holds_no_more_than_before() {
    let (place, path) = place();
    let server = Running::start(&mut place.serve_data());
    let (mut one, file) = client(&server, &path, "one");
    let (mut two, same) = client(&server, &path, "two");
    let program = program(&path);
    one.lock(&file, NfsLockType4::Read, (0, 10)).unwrap();
    assert_eq!(two.lock(&same, NfsLockType4::Write, (5, 10)), Err(Nfsstat4::Denied));
    range_lock::lock(program.as_fd(), Kind::Shared, (0, 10), false).unwrap();
    range_lock::lock(program.as_fd(), Kind::Exclusive, (10, 5), false).unwrap();
}

#[test]
fn a_client_that_wrote_and_now_reads_lets_programs_read() {
    let (place, path) = place();
    let server = Running::start(&mut place.serve_data());
    let (mut one, file) = client(&server, &path, "one");
    let program = program(&path);
    one.lock(&file, NfsLockType4::Write, (0, 10)).unwrap();
    assert_eq!(fcntl_lock(&program, SHARED), Err(Errno::AGAIN));
    one.lock(&file, NfsLockType4::Read, (0, 10)).unwrap();
    fcntl_lock(&program, SHARED).unwrap();
    assert_eq!(fcntl_lock(&program, EXCLUSIVE), Err(Errno::AGAIN));
}

#[test]
fn programs_can_lock_files_that_a_client_has_closed() {
    let (place, path) = place();
    let server = Running::start(&mut place.serve_data());
    let (mut one, file) = client(&server, &path, "one");
    one.lock(&file, NfsLockType4::Write, (0, u64::MAX)).unwrap();
    let program = program(&path);
    assert_eq!(fcntl_lock(&program, SHARED), Err(Errno::AGAIN));
    let id = format!("{:016x}", one.clientid);
    let said = run(comity().args(["evict", &id, "--state-dir"]).arg(place.state()));
    assert_eq!(said.code, Some(0), "{}", said.err);
    wait_until("the lock is free", || fcntl_lock(&program, SHARED).is_ok());
}

/// The kernel compares a lock with each other lock in turn, so the server must not hold tens of
/// thousands.
#[test]
fn above_a_number_of_ranges_the_whole_file_is_locked() {
    let (place, path) = place();
    let server = Running::start(&mut place.serve_data());
    let (mut one, file) = client(&server, &path, "one");
    let program = program(&path);
    let between = || range_lock::lock(program.as_fd(), Kind::Exclusive, (1, 1), false);
    let mut lock = None;
    for number in 0..1024 {
        lock = Some(one.lock(&file, NfsLockType4::Write, (2 * number, 1)).unwrap());
    }
    between().unwrap();
    range_lock::lock(program.as_fd(), Kind::Unlock, (1, 1), false).unwrap();
    for number in 1024..1030 {
        lock = Some(one.lock(&file, NfsLockType4::Write, (2 * number, 1)).unwrap());
    }
    assert_eq!(between(), Err(Errno::AGAIN));
    one.unlock(&file, lock.unwrap(), (100, 1000)).unwrap();
    between().unwrap();
}

#[test]
fn an_option_keeps_locks_of_programs_and_clients_apart() {
    let (place, path) = place();
    let server = Running::start(place.serve_data().arg("--no-local-locks"));
    let (mut one, file) = client(&server, &path, "one");
    let program = program(&path);
    fcntl_lock(&program, EXCLUSIVE).unwrap();
    one.lock(&file, NfsLockType4::Write, (0, 10)).unwrap();
    fcntl_lock(&program, FREE).unwrap();
    fcntl_lock(&program, EXCLUSIVE).unwrap();
}

/// Opens the file for reading in a thread, which waits until it can.
fn reader(path: &Path) -> Receiver<File> {
    let (path, (say, opened)) = (path.to_owned(), channel());
    std::thread::spawn(move || say.send(File::open(path).unwrap()));
    opened
}

/// Opens the file as a client that gets a delegation if possible.
fn delegated(server: &Running, path: &Path, name: &str) -> (Four, Opened) {
    let mut client = Four::connect(server.port, NOBODY, name);
    let file = client.open(path, share::BOTH | share::WANT_WRITE_DELEG).unwrap();
    (client, file)
}

#[test]
fn a_program_waits_until_a_client_has_returned_its_delegation() {
    let (place, path) = place();
    let server = Running::start(&mut place.serve_data());
    let (mut client, file) = delegated(&server, &path, "one");
    let delegation = file.delegation.unwrap();
    let opened = reader(&path);
    assert!(client.listen(PATIENCE, |client| !client.recalled.is_empty()));
    assert_eq!(client.recalled, [delegation]);
    assert!(opened.try_recv().is_err(), "it did not wait");
    client.give_back(&file, delegation).unwrap();
    opened.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn a_program_can_open_a_file_when_the_holder_of_its_delegation_is_evicted() {
    let (place, path) = place();
    let server = Running::start(&mut place.serve_data());
    let (client, file) = delegated(&server, &path, "one");
    assert!(file.delegation.is_some());
    let opened = reader(&path);
    assert!(opened.recv_timeout(Duration::from_millis(100)).is_err());
    let id = format!("{:016x}", client.clientid);
    run(comity().args(["evict", &id, "--state-dir"]).arg(place.state()));
    opened.recv_timeout(PATIENCE).unwrap();
}

#[test]
fn a_file_that_a_program_has_open_is_not_delegated() {
    let (place, path) = place();
    let server = Running::start(&mut place.serve_data());
    let program = program(&path);
    let (mut client, file) = delegated(&server, &path, "one");
    assert!(file.delegation.is_none());
    let read = client.open(&path, share::READ | share::WANT_READ_DELEG).unwrap();
    assert!(read.delegation.is_none());
    drop(program);
    let file = client.open(&path, share::BOTH | share::WANT_WRITE_DELEG).unwrap();
    assert!(file.delegation.is_some());
}

#[test]
fn an_option_lets_programs_open_delegated_files_at_once() {
    let (place, path) = place();
    let server = Running::start(place.serve_data().arg("--no-local-locks"));
    let _program = program(&path);
    let (mut client, file) = delegated(&server, &path, "one");
    assert!(file.delegation.is_some());
    reader(&path).recv_timeout(PATIENCE).unwrap();
    assert!(!client.listen(Duration::from_millis(100), |client| !client.recalled.is_empty()));
}

/// A change of a file by a program that does not open it.
type Change = fn(&Path);

const CHANGES: [(&str, Change); 6] = [
    ("rename", |path| fs::rename(path, path.with_extension("new")).unwrap()),
    ("unlink", |path| fs::remove_file(path).unwrap()),
    ("link", |path| fs::hard_link(path, path.with_extension("new")).unwrap()),
    ("chmod", |path| fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap()),
    ("chown", |path| match is_root() {
        true => std::os::unix::fs::chown(path, Some(1), None).unwrap(),
        false => fs::set_permissions(path, Permissions::from_mode(0o640)).unwrap(),
    }),
    ("rename over", |path| {
        fs::write(path.with_extension("new"), "").unwrap();
        fs::rename(path.with_extension("new"), path).unwrap();
    }),
];

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A server, a client of it, and one file for each change. The files are made 100 ms before the
/// server starts, so that a change gets a later ctime.
fn changeable() -> (Place, Running, Four, [PathBuf; CHANGES.len()]) {
    let (place, _) = place();
    let files = CHANGES.map(|(name, _)| {
        let path = place.data().join(name.replace(' ', "-"));
        fs::write(&path, "a program changes this").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        path
    });
    std::thread::sleep(Duration::from_millis(100));
    let server = Running::start(&mut place.serve_data());
    let client = Four::connect(server.port, NOBODY, "one");
    (place, server, client, files)
}

fn are_recalled(client: &mut Four, delegations: &[Stateid4]) -> bool {
    client.listen(PATIENCE, |client| client.recalled.len() >= delegations.len());
    client.recalled == delegations
}

#[test]
fn a_program_that_changes_a_file_has_it_recalled_and_does_not_wait() {
    for want in [share::READ | share::WANT_READ_DELEG, share::BOTH | share::WANT_WRITE_DELEG] {
        let (_place, _server, mut client, files) = changeable();
        let mut delegations = Vec::new();
        for ((name, change), path) in CHANGES.iter().zip(&files) {
            let file = client.open(path, want).unwrap();
            delegations.push(file.delegation.unwrap());
            // After this time the server knows that the client has received the delegation.
            std::thread::sleep(Duration::from_millis(100));
            change(path);
            assert!(are_recalled(&mut client, &delegations), "{name}");
            client.give_back(&file, delegations[delegations.len() - 1]).unwrap();
        }
    }
}

#[test]
fn a_program_that_changes_a_file_as_soon_as_it_is_delegated_has_it_recalled() {
    let (_place, _server, mut client, files) = changeable();
    let mut delegations = Vec::new();
    for ((name, change), path) in CHANGES.iter().zip(&files) {
        let file = client.open(path, share::BOTH | share::WANT_WRITE_DELEG).unwrap();
        delegations.push(file.delegation.unwrap());
        change(path);
        assert!(are_recalled(&mut client, &delegations), "{name}");
    }
}

#[test]
fn changes_by_the_holder_itself_recall_nothing() {
    if !is_root() {
        return eprintln!("skipped: takes root, to give a file to the client");
    }
    let (place, path) = place();
    std::os::unix::fs::chown(&path, Some(NOBODY), None).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let server = Running::start(&mut place.serve_data());
    let (mut client, file) = delegated(&server, &path, "one");
    let delegation = file.delegation.unwrap();
    client.change(&file, delegation).unwrap();
    assert!(!client.listen(Duration::from_millis(100), |client| !client.recalled.is_empty()));
    client.change(&file, delegation).unwrap();
    assert!(!client.listen(Duration::from_millis(100), |client| !client.recalled.is_empty()));
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert!(are_recalled(&mut client, &[delegation]));
}

#[test]
fn an_option_turns_off_recalls_after_changes_by_programs() {
    let (place, path) = place();
    let server = Running::start(place.serve_data().arg("--no-local-locks"));
    let (mut client, file) = delegated(&server, &path, "one");
    assert!(file.delegation.is_some());
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    assert!(!client.listen(Duration::from_millis(100), |client| !client.recalled.is_empty()));
}

/// An open descriptor would keep the space of a file that has no name any more.
#[test]
fn a_file_that_a_program_removes_is_closed() {
    let (place, path) = place();
    let server = Running::start(&mut place.serve_data());
    let _client = client(&server, &path, "one");
    let is_open = || {
        let descriptors = fs::read_dir(format!("/proc/{}/fd", server.process())).unwrap();
        let mut links = descriptors.flatten().filter_map(|it| fs::read_link(it.path()).ok());
        // The server uses a mount of its own, in which the file is in the root directory.
        links.any(|link| link.display().to_string().starts_with("/file"))
    };
    assert!(is_open(), "the descriptor is kept for the next call");
    fs::remove_file(&path).unwrap();
    let removed = Instant::now();
    wait_until("the file is closed", || !is_open());
    assert!(removed.elapsed() < Duration::from_secs(5), "{:?}", removed.elapsed());
}

/// Each locked file keeps descriptors open.
#[test]
fn a_host_that_locks_many_files_leaves_locks_for_others() {
    let (place, path) = place();
    let files: Vec<PathBuf> =
        (0..200).map(|number| path.with_extension(format!("{number}"))).collect();
    for file in &files {
        fs::copy(&path, file).unwrap();
    }
    let line = format!("{} 127.0.0.0/8(rw,insecure)\n", place.data().display());
    let exports = place.write("exports", &line);
    let mut serve = place.serve(&["--exports"]);
    serve.arg(exports);
    let server = Running::start(&mut with_few_descriptors(&serve));
    let client =
        |address, name| Four::try_on(stream_from(address, server.port), NOBODY, name).unwrap();
    let lock = |client: &mut Four, path: &Path| {
        let file = client.open(path, share::BOTH | share::WANT_NO_DELEG).unwrap();
        client.lock(&file, NfsLockType4::Write, (0, 10)).map(|lock| (file, lock))
    };
    let mut greedy = client([127, 0, 0, 2], "greedy");
    let mut locked: Vec<_> = files.iter().map_while(|file| lock(&mut greedy, file).ok()).collect();
    assert!((50..files.len() - 1).contains(&locked.len()), "{}", locked.len());
    let mut other = client([127, 0, 0, 3], "other");
    let same = other.open(&files[0], share::BOTH | share::WANT_NO_DELEG).unwrap();
    assert_eq!(other.lock(&same, NfsLockType4::Write, (0, 10)), Err(Nfsstat4::Denied));
    lock(&mut other, &path).expect("another host locks a file");
    assert_eq!(lock(&mut greedy, files.last().unwrap()).err(), Some(Nfsstat4::Delay));
    for _ in 0..2 {
        let (file, held) = locked.pop().unwrap();
        greedy.unlock(&file, held, (0, 10)).unwrap();
    }
    lock(&mut greedy, files.last().unwrap()).expect("it has unlocked other files");
}

/// The same command in a process that may open 1,500 files.
fn with_few_descriptors(command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", "ulimit -n 1500; exec \"$0\" \"$@\""]).arg(command.get_program());
    shell.args(command.get_args());
    shell
}
