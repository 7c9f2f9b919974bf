//! `comity placement add`, and data servers that a placement cannot get.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

mod common;

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use common::mirrored::Mirrored;
use common::placed::{BOTH, World, placement, shown, store_of, store_with, write};
use common::{Place, Running, Said, comity, is_root, run, wait_until};
use serde_json::Value;

/// The stripe unit in bytes.
const UNIT: usize = 64 << 10;

/// Starts a data server of a new folder of this name.
fn store(place: &Place, name: &str) -> Running {
    fs::create_dir(place.path(name)).unwrap();
    store_of(place, name, 0)
}

fn add(place: &Place, name: &str, port: u16, more: &[&str]) -> Said {
    let address = format!("127.0.0.1:{port}");
    placement(place, &[&["add", name, &*address][..], more].concat())
}

fn config(place: &Place) -> String {
    fs::read_to_string(place.path("config.toml")).unwrap()
}

/// The number of files in a folder.
fn count(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_data_server_is_added_to_the_configuration_and_gets_new_files() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let before = config(&world.place).replace("data_servers = [\n", "data_servers = [ # all\n");
    fs::write(world.place.path("config.toml"), &before).unwrap();
    let third = store(&world.place, "c");
    let said = add(&world.place, "c", third.port, &["--dry-run"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let entry = format!("{{ name = \"c\", address = \"127.0.0.1:{}\" }}", third.port);
    assert!(said.out.contains("would be added to "), "{}", said.out);
    assert!(said.out.contains(&entry), "{}", said.out);
    assert_eq!((config(&world.place), shown(&world.place).len()), (before.clone(), 2));
    let said = add(&world.place, "c", third.port, &["--json"]);
    let answer: Value = serde_json::from_str(&said.out).expect(&said.err);
    assert_eq!((&answer["is_added"], &answer["data_files"]), (&true.into(), &0.into()));
    let (head, tail) = before.rsplit_once("]\n").unwrap();
    assert_eq!(config(&world.place), format!("{head}  {entry},\n]\n{tail}"));
    assert_eq!(shown(&world.place)[2]["is_up"], true);
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    write(&mut client, &file.handle, file.stateid, (0, &vec![7; 3 * UNIT])).unwrap();
    assert_eq!(count(&world.place.path("c")), 1);
    let said = add(&world.place, "c", third.port, &[]);
    assert!(said.err.contains("a data server c is there already"), "{}", said.err);
    let said = add(&world.place, "d", third.port, &[]);
    assert!(said.err.contains("is data server c of this placement already"), "{}", said.err);
}

#[test]
fn a_data_server_that_cannot_be_used_is_not_added() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let before = config(&world.place);
    let refused = |name: &str, port: u16, why: &str| {
        let said = add(&world.place, name, port, &[]);
        assert_eq!(said.code, Some(1), "{}", said.out);
        assert!(said.err.contains(why), "{}", said.err);
        assert_eq!((config(&world.place), shown(&world.place).len()), (before.clone(), 2));
    };
    let used = store(&world.place, "used");
    fs::write(world.place.path("used").join("letter"), "text").unwrap();
    refused("c", used.port, "files that are not of this placement, such as letter");
    let key = world.place.write("other-key", "ff0102030405060708090a0b0c0d0e0f\n");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    fs::create_dir(world.place.path("other")).unwrap();
    let other = store_with(("127.0.0.1", &key), &world.place, "other", 0);
    refused("c", other.port, "it has another key: copy the file of `key` to it");
    let port = other.port;
    other.kill();
    refused("c", port, "data server c: start it by `comity serve --data-server`");
    let said = add(&world.place, "c", port, &["--path", "/mirror"]);
    assert!(said.err.contains("drop --path"), "{}", said.err);
}

#[test]
fn a_configuration_that_the_server_refuses_is_restored() {
    if !is_root() {
        return;
    }
    let world = World::new();
    let before = config(&world.place) + "\n[[export]]\npath = \"no/absolute/path\"\n";
    fs::write(world.place.path("config.toml"), &before).unwrap();
    let third = store(&world.place, "c");
    let said = add(&world.place, "c", third.port, &[]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("is as before"), "{}", said.err);
    assert_eq!((config(&world.place), shown(&world.place).len()), (before, 2));
}

#[test]
fn a_data_server_with_another_key_is_named_by_a_check_and_by_the_status() {
    if !is_root() {
        return;
    }
    let World { place, stores: [_first, second], mds: _mds } = World::new();
    let check = || run(comity().args(["check", "--config"]).arg(place.path("config.toml")));
    assert_eq!(check().code, Some(0));
    let key = place.write("other-key", "ff0102030405060708090a0b0c0d0e0f\n");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let port = second.port;
    second.kill();
    let _other = store_with(("127.0.0.1", &key), &place, "b", port);
    let said = check();
    assert!(said.out.contains("data server b") && said.out.contains("another key"), "{}", said.out);
    wait_until("the error", || {
        let error = shown(&place)[1]["last_error"].clone();
        error.as_str().is_some_and(|it| it.contains("another key"))
    });
}

#[test]
fn a_stock_server_is_added_to_a_placement_with_mirrors() {
    if !is_root() {
        return;
    }
    let world = Mirrored::with(2);
    let third = Mirrored::spare(&world.place);
    let said = add(&world.place, "c", third.port, &[]);
    assert!(said.err.contains("say --path"), "{}", said.err);
    let path = world.place.path("c").display().to_string();
    let said = add(&world.place, "c", third.port, &["--path", &path]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    assert!(said.out.contains("can be used: its folder is empty"), "{}", said.out);
    assert!(said.out.contains("use c from now on; old ones stay where they are"), "{}", said.out);
    assert_eq!(shown(&world.place)[2]["is_up"], true);
    assert!(config(&world.place).contains(&format!("path = \"{path}\" }},\n]\n")));
}
