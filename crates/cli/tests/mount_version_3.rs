//! A server of this program, mounted by this program over NFS 3 with and without the disk cache.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::thread;
use std::time::Duration;

use common::wait_until;
use common::world::World;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;

const SERVE: &[&str] = &["--lease-seconds", "10"];

fn world() -> Option<World> {
    World::exporting("rw,insecure,no_root_squash", SERVE)
}

fn mount(world: &World, options: &str) {
    world.mount(&format!("vers=3,{options}"));
}

/// The number of calls of a procedure that the server has answered.
fn calls(world: &World, procedure: &str) -> u64 {
    world.counted(&["_total", &format!("\"{procedure}\"")])
}

#[test]
fn files_are_read_and_written_over_version_3() {
    let Some(world) = world() else { return };
    fs::write(world.at_server("there"), "from the server").unwrap();
    mount(&world, "nodc_enable");
    assert_eq!(fs::read_to_string(world.dir.join("there")).unwrap(), "from the server");
    fs::create_dir(world.dir.join("dir")).unwrap();
    fs::write(world.dir.join("dir/new"), "from the client").unwrap();
    assert_eq!(fs::read_to_string(world.at_server("dir/new")).unwrap(), "from the client");
    let opened = OpenOptions::new().create_new(true).write(true).open(world.dir.join("dir/new"));
    assert_eq!(opened.unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    std::os::unix::fs::symlink("there", world.dir.join("link")).unwrap();
    assert_eq!(fs::read_to_string(world.dir.join("link")).unwrap(), "from the server");
    let names: Vec<_> = fs::read_dir(&world.dir).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3);
    assert!(calls(&world, "READDIRPLUS") > 0, "the mount used another version");
    world.umount();
}

#[test]
fn an_open_file_that_is_removed_is_kept_until_it_is_closed() {
    let Some(world) = world() else { return };
    mount(&world, "nodc_enable");
    for name in ["removed", "replaced"] {
        fs::write(world.dir.join(name), "kept").unwrap();
        let mut file = File::options().read(true).write(true).open(world.dir.join(name)).unwrap();
        if name == "removed" {
            fs::remove_file(world.dir.join(name)).unwrap();
        } else {
            fs::write(world.dir.join("other"), "other").unwrap();
            fs::rename(world.dir.join("other"), world.dir.join(name)).unwrap();
        }
        file.seek(SeekFrom::End(0)).unwrap();
        file.write_all(b" longer").unwrap();
        file.sync_all().unwrap();
        file.rewind().unwrap();
        let mut text = String::new();
        file.read_to_string(&mut text).unwrap();
        assert_eq!(text, "kept longer", "{name}");
    }
    let names = || fs::read_dir(world.place.data()).unwrap().count();
    wait_until("the hidden names are gone", || names() == 1);
    world.umount();
}

#[test]
fn a_file_is_fetched_once_also_over_mounts_of_version_3() {
    let Some(world) = world() else { return };
    let data: Vec<u8> = (0..3_000_000).map(|at| (at % 251) as u8).collect();
    fs::write(world.at_server("file"), &data).unwrap();
    let mut reads = Vec::new();
    for _ in 0..2 {
        mount(&world, &world.cached(""));
        assert!(fs::read(world.dir.join("file")).unwrap() == data);
        world.umount();
        reads.push(calls(&world, "READ"));
    }
    assert!(reads[0] > 0 && reads[0] == reads[1], "{reads:?}");
    fs::write(world.at_server("file"), "changed").unwrap();
    mount(&world, &world.cached(""));
    assert_eq!(fs::read_to_string(world.dir.join("file")).unwrap(), "changed");
    world.umount();
}

#[test]
fn locks_are_held_at_the_server_and_survive_its_restart() {
    let Some(mut world) = world() else { return };
    fs::write(world.at_server("file"), "data").unwrap();
    mount(&world, "nodc_enable");
    let open = || File::options().read(true).write(true).open(world.dir.join("file")).unwrap();
    let (one, other) = (open(), open());
    flock(&one, FlockOperation::NonBlockingLockExclusive).unwrap();
    assert!(flock(&other, FlockOperation::NonBlockingLockExclusive).is_err());
    assert!(calls(&world, "LOCK") >= 2, "the server was asked");
    world.kill_server();
    world.start(SERVE);
    wait_until("the lock is reclaimed", || calls(&world, "LOCK") >= 1);
    let seen = || flock(&other, FlockOperation::NonBlockingLockExclusive).is_err();
    assert!(seen(), "it is still held");
    flock(&one, FlockOperation::Unlock).unwrap();
    flock(&other, FlockOperation::NonBlockingLockExclusive).unwrap();
    drop((one, other));
    world.umount();
}

/// Runs flock(1) on an open file, and kills it while it waits for a stopped server.
fn flock_that_is_killed(world: &World, file: &File) {
    world.server().signal(Signal::STOP);
    let mut command = Command::new("flock");
    let mut child = command.args(["-x", "0"]).stdin(file.try_clone().unwrap()).spawn().unwrap();
    let name = format!("/proc/{}/comm", child.id());
    wait_until("flock(1) runs", || fs::read_to_string(&name).is_ok_and(|name| name == "flock\n"));
    thread::sleep(Duration::from_millis(500));
    assert!(child.try_wait().unwrap().is_none(), "it waits for the server");
    child.kill().unwrap();
    child.wait().unwrap();
    world.server().signal(Signal::CONT);
}

#[test]
fn a_lock_whose_caller_was_killed_is_released() {
    let Some(world) = world() else { return };
    fs::write(world.at_server("file"), "data").unwrap();
    mount(&world, "nodc_enable");
    let open = || File::options().read(true).write(true).open(world.dir.join("file")).unwrap();
    let (one, other) = (open(), open());
    flock_that_is_killed(&world, &one);
    let is_free = || flock(&other, FlockOperation::NonBlockingLockExclusive).is_ok();
    wait_until("the lock is free", is_free);
    drop((one, other));
    world.umount();
}

#[test]
fn a_user_can_lock_a_file_that_the_owner_of_the_mount_may_not_open() {
    let Some(world) = World::exporting("rw,insecure", SERVE) else { return };
    let top = world.dir.parent().unwrap();
    for open in [top, &world.place.data()] {
        fs::set_permissions(open, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let file = world.at_server("file");
    fs::write(&file, "of user 1").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::chown(&file, Some(1), Some(1)).unwrap();
    mount(&world, "nodc_enable");
    let lock = |uid| {
        let mut flock = Command::new("flock");
        flock.args(["-s", "-n"]).arg(world.dir.join("file")).arg("true");
        flock.uid(uid).gid(uid).status().unwrap().success()
    };
    assert!(lock(1), "the caller may open it");
    assert!(!lock(2));
    world.umount();
}

#[test]
fn own_writes_do_not_invalidate_what_is_cached_of_version_3() {
    let Some(world) = world() else { return };
    fs::write(world.at_server("file"), vec![7; 1 << 20]).unwrap();
    mount(&world, &world.cached(""));
    assert_eq!(fs::read(world.dir.join("file")).unwrap().len(), 1 << 20);
    let before = calls(&world, "READ");
    for _ in 0..5 {
        let mut file = OpenOptions::new().append(true).open(world.dir.join("file")).unwrap();
        file.write_all(&[8; 4096]).unwrap();
        drop(file);
        fs::read(world.dir.join("file")).unwrap();
    }
    assert_eq!(calls(&world, "READ"), before, "nothing was read again");
    assert_eq!(fs::metadata(world.at_server("file")).unwrap().len(), (1 << 20) + 5 * 4096);
    world.umount();
}
