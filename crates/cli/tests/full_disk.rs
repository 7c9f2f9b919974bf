//! A server whose state folder is on a disk that is full for a while.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{Read, Seek, Write};
use std::path::PathBuf;
use std::process::Command;

use common::four::Four;
use common::{NOBODY, Place, Running, metrics, wait_until};

/// A file system in memory, unmounted when this is dropped.
struct Tmpfs(PathBuf);

impl Tmpfs {
    fn mount(folder: PathBuf) -> Option<Self> {
        fs::create_dir(&folder).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16m,mode=700", "tmpfs"]).arg(&folder);
        let mounted = mount.output().is_ok_and(|output| output.status.success());
        if !mounted {
            eprintln!("skipped: only root may mount");
        }
        mounted.then_some(Self(folder))
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_server_whose_disk_was_full_stores_clients_again_without_a_restart() {
    let place = Place::new();
    let Some(disk) = Tmpfs::mount(place.state()) else { return };
    let mut log = tempfile::tempfile().unwrap();
    let mut serve = place.serve_data();
    serve.args(["--metrics", "127.0.0.1:0"]);
    let server = Running::start_with_log(&mut serve, log.try_clone().unwrap());
    let count = Cell::new(0);
    let is_let_in = || {
        let name = format!("client {}", count.replace(count.get() + 1));
        Four::try_connect(server.port, NOBODY, &name).is_ok()
    };
    let is_broken = || metrics(&server).contains("\ncomity_state_store_broken 1\n");
    assert!(is_let_in() && !is_broken());

    let fill = disk.0.join("fill");
    let mut file = File::create(&fill).unwrap();
    while file.write(&[1; 4096]).is_ok_and(|written| written > 0) {}
    drop(file);
    wait_until("a client cannot be stored", || !is_let_in());
    assert!(is_broken() && !is_let_in());

    fs::remove_file(&fill).unwrap();
    wait_until("clients are stored again", is_let_in);
    assert!(!is_broken());
    let mut told = String::new();
    log.rewind().unwrap();
    log.read_to_string(&mut told).unwrap();
    let said = |words: &str| told.matches(words).count();
    assert_eq!((said("cannot be written"), said("is stored again")), (1, 1), "{told}");

    drop(server);
    let server = Running::start(place.serve_data().args(["--metrics", "127.0.0.1:0"]));
    assert!(!metrics(&server).contains("\ncomity_grace_left_seconds 0\n"), "they may reclaim");
}
