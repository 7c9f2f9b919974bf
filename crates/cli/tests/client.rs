//! The independent client nfs-rs against a running server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::future::Future;
use std::path::Path;

use common::raw::Raw;
use common::{NOBODY, Place, Running};
use nfs_rs::Mount;

/// Runs a client to its end, within [`common::PATIENCE`].
fn block_on<T>(client: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(common::PATIENCE, client).await.unwrap() })
}

/// The versions of NFS that the client supports.
const VERSIONS: [&str; 4] = ["3", "4.0", "4.1", "4.2"];

async fn mount(server: &Running, path: &Path) -> Box<dyn Mount> {
    mount_over(server, path, "3").await
}

async fn mount_over(server: &Running, path: &Path, version: &str) -> Box<dyn Mount> {
    let port = server.port;
    let url = format!(
        "nfs://127.0.0.1{}?version={version}&nfsport={port}&mountport={port}&noresvport=true\
         &uid={NOBODY}&gid={NOBODY}",
        path.display()
    );
    nfs_rs::parse_url_and_mount(&url).await.unwrap()
}

/// A server folder whose data everybody may change.
fn place() -> Place {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    fs::set_permissions(place.data(), fs::Permissions::from_mode(0o777)).unwrap();
    place
}

async fn names(mount: &dyn Mount, dir: &str) -> BTreeSet<String> {
    let fh = mount.lookup_path(dir).await.unwrap().fh;
    let mut position = nfs_rs::DirectoryCookie::default();
    let mut names = BTreeSet::new();
    loop {
        let page = mount.readdirplus_page(fh.clone(), position).await.unwrap();
        for entry in page.entries {
            assert!(names.insert(entry.file_name.clone()), "{} twice", entry.file_name);
        }
        if page.eof {
            return names;
        }
        position = page.next;
    }
}

#[test]
fn files_and_folders_are_made_listed_renamed_and_removed() {
    VERSIONS.iter().for_each(|version| names_change_over(version));
}

fn names_change_over(version: &str) {
    let place = place();
    let server = Running::start(&mut place.serve_data());
    block_on(async {
        let mount = mount_over(&server, &place.data(), version).await;
        mount.mkdir_path("dir", 0o755).await.unwrap();
        for name in 0..500 {
            mount.create_path(&format!("dir/file-{name}"), Some(0o644)).await.unwrap();
        }
        mount.symlink_path("file-1", "dir/link").await.unwrap();
        assert_eq!(mount.readlink_path("dir/link").await.unwrap(), "file-1");
        mount.link_path("dir/file-2", "dir/second").await.unwrap();
        assert_eq!(mount.getattr_path("dir/second").await.unwrap().nlink, 2);
        mount.rename_path("dir/file-3", "dir/renamed").await.unwrap();
        mount.remove_path("dir/file-4").await.unwrap();
        let found = names(&*mount, "dir").await;
        let there = fs::read_dir(place.data().join("dir")).unwrap();
        let there: BTreeSet<String> =
            there.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        assert_eq!(found.len(), 501, "over {version}");
        assert_eq!(found, there);
        assert!(mount.rmdir_path("dir").await.is_err(), "it is not empty");
        assert!(mount.lookup_path("dir/file-3").await.is_err(), "it was renamed");
        mount.umount().await.unwrap();
    });
    assert!(server.stop().success());
}

#[test]
fn a_big_file_is_read_as_it_was_written() {
    VERSIONS.iter().for_each(|version| a_big_file_over(version));
}

fn a_big_file_over(version: &str) {
    let place = place();
    let server = Running::start(&mut place.serve_data());
    let data: Vec<u8> = (0..20_000_003_u32).map(|at| (at % 251) as u8).collect();
    block_on(async {
        let mount = mount_over(&server, &place.data(), version).await;
        let made = mount.create_path("big", Some(0o644)).await.unwrap();
        let written = nfs_rs::write_all(&*mount, made.fh.clone(), 0, data.clone().into()).await;
        assert_eq!(written.unwrap(), data.len() as u64);
        let mut back = Vec::new();
        while back.len() < data.len() {
            let read = mount.read(made.fh.clone(), back.len() as u64, 300_000).await.unwrap();
            assert!(!read.is_empty());
            back.extend_from_slice(&read);
        }
        assert!(back == data, "what came back differs");
        mount.umount().await.unwrap();
    });
    assert!(fs::read(place.data().join("big")).unwrap() == data);
}

/// Starts the server of a place again at the same port.
fn again(place: &Place, port: u16) -> Running {
    let mut command = common::comity();
    command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register", "--state-dir"]);
    command.arg(place.state()).args(["--port", &port.to_string()]).arg(place.data());
    Running::start(&mut command)
}

#[test]
fn a_crash_of_the_server_loses_no_acknowledged_change() {
    let place = place();
    let server = Running::start(&mut place.serve_data());
    let port = server.port;
    block_on(async {
        let mount = mount(&server, &place.data()).await;
        let made = mount.create_path("file", Some(0o644)).await.unwrap();
        nfs_rs::write_all(&*mount, made.fh.clone(), 0, b"before".to_vec().into()).await.unwrap();
        server.kill();
        let server = again(&place, port);
        let read = mount.read(made.fh.clone(), 0, 100).await.unwrap();
        assert_eq!(&read[..], b"before", "the handle and the data outlive the crash");
        nfs_rs::write_all(&*mount, made.fh.clone(), 6, b" after".to_vec().into()).await.unwrap();
        mount.rename_path("file", "moved").await.unwrap();
        server.kill();
        let server = again(&place, port);
        let read = mount.read(made.fh.clone(), 0, 100).await.unwrap();
        assert_eq!(&read[..], b"before after", "the handle follows a renamed file");
        mount.umount().await.unwrap();
        assert!(server.stop().success());
    });
}

#[test]
fn the_write_verifier_changes_at_every_restart_of_the_server_and_only_then() {
    let place = place();
    let server = Running::start(&mut place.serve_data());
    let port = server.port;
    let mut client = Raw::connect(port, NOBODY);
    let root = client.mount(&place.data()).unwrap();
    let file = client.create(&root, "file", [1; 8]).unwrap();
    let first = client.commit(&file);
    let reload = common::run(common::comity().args(["reload", "--state-dir"]).arg(place.state()));
    assert_eq!(reload.code, Some(0), "{}", reload.err);
    assert_eq!(Raw::connect(port, NOBODY).commit(&file), first, "after a reload");
    server.kill();
    let server = again(&place, port);
    let second = Raw::connect(port, NOBODY).commit(&file);
    assert_ne!(second, first, "after a crash");
    assert!(server.stop().success());
    let server = again(&place, port);
    let third = Raw::connect(port, NOBODY).commit(&file);
    assert!(third != first && third != second, "after an end");
    assert!(server.stop().success());
}

#[test]
fn an_exclusive_create_repeated_after_a_crash_is_the_same_file() {
    const EXIST: u32 = 17;
    let place = place();
    let server = Running::start(&mut place.serve_data());
    let port = server.port;
    let mut client = Raw::connect(port, NOBODY);
    let root = client.mount(&place.data()).unwrap();
    let made = client.create(&root, "lock", [1, 2, 3, 4, 5, 6, 7, 8]).unwrap();
    server.kill();
    let server = again(&place, port);
    let mut client = Raw::connect(port, NOBODY);
    assert_eq!(client.create(&root, "lock", [1, 2, 3, 4, 5, 6, 7, 8]), Ok(made));
    assert_eq!(client.create(&root, "lock", [8, 7, 6, 5, 4, 3, 2, 1]), Err(EXIST));
    assert!(server.stop().success());
}

#[test]
fn a_read_only_server_changes_nothing() {
    const ROFS: u32 = 30;
    let place = place();
    let line = format!("{} 127.0.0.1(rw,insecure)\n", place.data().display());
    let exports = place.write("my.exports", &line);
    let from_files = Running::start(place.serve(&["--read-only", "--exports"]).arg(exports));
    let mut client = Raw::connect(from_files.port, NOBODY);
    let root = client.mount(&place.data()).unwrap();
    assert_eq!(client.create(&root, "new", [1; 8]), Err(ROFS));
    drop(from_files);
    let from_line = Running::start(place.serve(&["--read-only"]).arg(place.data()));
    assert_eq!(Raw::connect(from_line.port, NOBODY).create(&root, "new", [1; 8]), Err(ROFS));
}
