//! Sizes of files on data servers after clients have written there without a LAYOUTCOMMIT.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use comity_proto::nfs4::{Layoutiomode4, Nfsstat4};
use common::four::{Four, Opened};
use common::placed::{BOTH, Layout, UNIT, World, commit, give_back, layout, store_of, text, write};
use common::raw::Raw;
use common::{Running, comity, run, wait_until};

/// A file that a client has written by a layout, without saying so.
struct Written {
    file: Opened,
    layout: Layout,
    whole: Vec<u8>,
}

/// Writes a file of several stripe units by a layout.
fn write_by_layout(world: &World, client: &mut Four) -> Written {
    let file = client.open(&world.file("f"), BOTH).unwrap();
    let layout = layout(client, &file, Layoutiomode4::Rw).unwrap();
    let whole = text(3 * UNIT + 1000);
    let mut stores = world.stores.each_ref().map(|it| Four::connect(it.port, 1000, "client"));
    for (at, unit) in whole.chunks(UNIT as usize).enumerate() {
        let place = (at as u64 * UNIT, unit);
        write(&mut stores[at % 2], &layout.handles[at % 2], file.stateid, place).unwrap();
    }
    Written { file, layout, whole }
}

/// Waits until all bytes are seen through the metadata server.
fn all_is_seen(mds: &Running, it: &Written) {
    let mut third = Raw::connect(mds.port, 0);
    let seen = || third.read(&it.file.handle).is_ok_and(|bytes| bytes == it.whole);
    wait_until("the bytes are within the file", seen);
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

fn evict(world: &World, client: &Four) {
    let id = format!("{:016x}", client.clientid);
    let said = run(comity().args(["evict", &id, "--state-dir"]).arg(world.place.state()));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
}

/// Asserts that a handle of a layout is refused by a data server.
fn is_refused(world: &World, it: &Written) {
    let mut store = Four::connect(world.stores[0].port, 1000, "late");
    let late = write(&mut store, &it.layout.handles[0], it.file.stateid, (0, b"late"));
    assert_eq!(late, Err(Nfsstat4::Stale));
}

#[test]
fn bytes_are_seen_after_a_layout_is_returned_without_a_commit() {
    let world = World::new();
    let mut client = world.client();
    let it = write_by_layout(&world, &mut client);
    let before = fs::metadata(world.file("f")).unwrap();
    assert_eq!(before.len(), 0, "nobody has told the metadata server");
    thread::sleep(Duration::from_millis(20));
    give_back(&mut client, &it.file, &it.layout);
    all_is_seen(&world.mds, &it);
    let after = fs::metadata(world.file("f")).unwrap();
    assert!((after.mtime(), after.mtime_nsec()) > (before.mtime(), before.mtime_nsec()));
}

#[test]
fn bytes_of_a_client_that_died_are_seen_after_its_lease() {
    let world = World::with(&["--lease-seconds", "2"]);
    let mut client = world.client();
    let it = write_by_layout(&world, &mut client);
    drop(client);
    all_is_seen(&world.mds, &it);
}

#[test]
fn bytes_that_an_evicted_client_wrote_after_its_last_commit_are_seen() {
    let world = World::new();
    let mut client = world.client();
    let it = write_by_layout(&world, &mut client);
    assert_eq!(commit(&mut client, &it.file, &it.layout, UNIT), Some(UNIT));
    evict(&world, &client);
    all_is_seen(&world.mds, &it);
    is_refused(&world, &it);
}

#[test]
fn bytes_are_seen_after_the_metadata_server_was_killed_with_layouts_out() {
    let world = World::new();
    let it = write_by_layout(&world, &mut world.client());
    let World { place, stores, mds } = world;
    mds.kill();
    let mds = Running::start(place.serve(&["--config"]).arg(place.path("config.toml")));
    all_is_seen(&mds, &it);
    is_refused(&World { place, stores, mds }, &it);
}

#[test]
fn a_data_server_that_is_down_is_asked_later_and_the_file_can_be_used_meanwhile() {
    let world = World::new();
    let mut client = world.client();
    let it = write_by_layout(&world, &mut client);
    assert_eq!(commit(&mut client, &it.file, &it.layout, 10), Some(10));
    let again = layout(&mut client, &it.file, Layoutiomode4::Rw).unwrap();
    let World { place, stores: [one, two], mds } = world;
    let port = two.port;
    two.stop();
    give_back(&mut client, &it.file, &again);
    let is_asked = || mds.log().contains("a data server does not tell how far");
    wait_until("the data server was asked in vain", is_asked);
    let mut third = Raw::connect(mds.port, 0);
    assert_eq!(third.read(&it.file.handle).unwrap(), it.whole[..10]);
    let two = store_of(&place, "b", port);
    all_is_seen(&mds, &it);
    drop((one, two));
}

#[test]
fn a_truncation_after_the_death_of_a_client_is_not_undone() {
    const JUKEBOX: u32 = 10_008;
    let world = World::new();
    let mut client = world.client();
    let it = write_by_layout(&world, &mut client);
    let mut third = Raw::connect(world.mds.port, 0);
    evict(&world, &client);
    let mut cut = || third.setattr(&it.file.handle, (None, Some(7)));
    wait_until("the truncation is done", || match cut() {
        Ok(()) => true,
        Err(status) => {
            assert_eq!(status, JUKEBOX);
            false
        }
    });
    thread::sleep(Duration::from_secs(3));
    assert_eq!(size(&world.file("f")), 7);
    assert_eq!(third.read(&it.file.handle).unwrap(), it.whole[..7]);
}

#[test]
fn a_file_whose_size_is_known_is_left_alone_after_a_restart() {
    let world = World::new();
    let mut client = world.client();
    let it = write_by_layout(&world, &mut client);
    let end = it.whole.len() as u64;
    assert_eq!(commit(&mut client, &it.file, &it.layout, end), Some(end));
    give_back(&mut client, &it.file, &it.layout);
    thread::sleep(Duration::from_secs(3));
    let World { place, stores, mds } = world;
    mds.kill();
    // Only a question for the size would find these bytes.
    let stored = fs::read_dir(place.path("a")).unwrap().next().unwrap().unwrap().path();
    let file = fs::OpenOptions::new().write(true).open(stored).unwrap();
    file.set_len(9 * UNIT).unwrap();
    let mds = Running::start(place.serve(&["--config"]).arg(place.path("config.toml")));
    thread::sleep(Duration::from_secs(3));
    assert_eq!(size(&place.data().join("f")), end);
    drop((stores, mds));
}
