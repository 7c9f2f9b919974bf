//! `comity placement` shows and checks the data servers of a running metadata server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

mod common;

use std::fs;
use std::thread;
use std::time::Duration;

use common::four::Four;
use common::placed::{BOTH, UNIT, World, config, placement, shown, store_of, text, write};
use common::{Place, Running, wait_until};
use serde_json::Value;

/// Returns whether the data server of this number is up, after a pause for the server.
fn is_up(place: &Place, number: usize) -> bool {
    thread::sleep(Duration::from_millis(100));
    shown(place)[number]["is_up"] == true
}

#[test]
fn status_shows_the_space_of_data_servers_and_the_error_of_one_while_it_is_lost() {
    let world = World::new();
    for (server, store) in shown(&world.place).iter().zip(&world.stores) {
        assert_eq!(server["is_up"], true);
        assert_eq!(server["address"], format!("127.0.0.1:{}", store.port));
        assert_eq!(server["last_error"], Value::Null);
        assert!(server["total_bytes"].as_u64() > server["free_bytes"].as_u64(), "{server}");
    }
    let World { place, stores: [_one, two], mds: _mds } = world;
    let port = two.port;
    two.stop();
    wait_until("the loss of an idle data server is noticed", || !is_up(&place, 1));
    let servers = shown(&place);
    assert_eq!((&servers[0]["is_up"], &servers[1]["name"]), (&true.into(), &"b".into()));
    assert!(servers[1]["last_error"].is_string(), "{servers:?}");
    assert!(servers[1]["total_bytes"].is_u64(), "{servers:?}");
    let said = placement(&place, &["status", place.data().to_str().unwrap()]);
    let states: Vec<&str> =
        said.out.lines().filter_map(|it| it.split_whitespace().nth(3)).collect();
    assert_eq!(states[..3], ["STATE", "up", "down"], "{}", said.out);
    let _two = store_of(&place, "b", port);
    wait_until("the data server is found again", || is_up(&place, 1));
    assert_eq!(shown(&place)[1]["last_error"], Value::Null, "an error that is over is not shown");
    let said = placement(&place, &["status", "/nowhere"]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("no export /nowhere has data servers"), "{}", said.err);
}

/// The counts of lost, orphaned, differing and unchecked data files that a check finds, and its
/// exit code.
fn counts(place: &Place, arguments: &[&str]) -> ([u64; 4], Option<i32>) {
    let said = placement(place, &[&["check", "--json"], arguments].concat());
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    let count = |kind: &str| answer[kind].as_u64().unwrap();
    (["lost", "orphaned", "differing", "unchecked"].map(count), said.code)
}

#[test]
fn check_finds_lost_orphaned_and_differing_data_files() {
    let world = World::new();
    let mut client = world.client();
    fs::create_dir(world.file("d")).unwrap();
    for name in ["f", "d/g"] {
        let file = client.open(&world.file(name), BOTH).unwrap();
        write(&mut client, &file.handle, file.stateid, (0, &text(2 * UNIT))).unwrap();
    }
    let said = placement(&world.place, &["check"]);
    assert_eq!((said.out.as_str(), said.code), ("2 files: all right\n", Some(0)), "{}", said.err);
    let one = fs::read_dir(world.place.path("b")).unwrap().next().unwrap().unwrap().path();
    let other = world.place.path("a").join(one.file_name().unwrap());
    fs::remove_file(one).unwrap();
    fs::write(other, text(5 * UNIT)).unwrap();
    fs::write(world.place.path("a").join(format!("{:032x}", 7)), "data").unwrap();
    assert_eq!(counts(&world.place, &[]), ([1, 1, 1, 0], Some(1)));
    let said = placement(&world.place, &["check", world.place.data().to_str().unwrap()]);
    assert!(said.out.contains(" on b: no data file; 131072 bytes are expected\n"), "{}", said.out);
    let World { place, stores: [_one, two], mds: _mds } = world;
    two.stop();
    let ([lost, orphaned, differing, unchecked], code) = counts(&place, &[]);
    assert_eq!(([lost, orphaned, differing], unchecked > 0, code), ([0, 1, 1], true, Some(1)));
    let (again, _) = counts(&place, &[]);
    assert_eq!(again, [0, 1, 1, 1], "a data server that is lost is one finding");
}

#[test]
fn check_knows_that_exports_may_share_data_servers() {
    let World { place, stores, mds } = World::new();
    mds.stop();
    fs::create_dir(place.path("more")).unwrap();
    let config = config(&place, stores.each_ref().map(|it| it.port));
    let data = place.data().to_str().unwrap().to_owned();
    let more = config.replace(&data, place.path("more").to_str().unwrap());
    let config = place.write("config.toml", &(config + "\n" + &more));
    let mds = Running::start(place.serve(&["--config"]).arg(config));
    let mut client = Four::connect(mds.port, 0, "client");
    let file = client.open(&place.path("more").join("f"), BOTH).unwrap();
    write(&mut client, &file.handle, file.stateid, (0, &text(2 * UNIT))).unwrap();
    assert_eq!(counts(&place, &[&data]), ([0; 4], Some(0)));
}
