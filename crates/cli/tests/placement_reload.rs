//! A reload changes a placement, while clients go on.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

mod common;

use std::fs;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use comity_proto::nfs4::{Bitmap4, Layoutiomode4, Nfsstat4, attribute, operation as op};
use common::four::{Four, Opened, operation};
use common::placed::{
    BOTH, Layout, UNIT, World, commit, config_with, give_back, layout, on, placement, ports, shown,
    store_of, text, write,
};
use common::raw::Raw;
use common::{PATIENCE, Running, Said, comity, run};
use serde_json::Value;

/// Entries of data servers of the configuration, with these names, ports and additions.
fn entries(servers: &[(&str, u16, &str)]) -> String {
    let entry = |(name, port, more): &(&str, u16, &str)| {
        format!("  {{ name = \"{name}\", address = \"127.0.0.1:{port}\"{more} }},\n")
    };
    servers.iter().map(entry).collect()
}

/// Reloads a configuration with these data servers.
fn reload(world: &World, servers: &[(&str, u16, &str)]) -> Said {
    reload_text(world, &config_with(&world.place, &entries(servers)))
}

fn reload_text(world: &World, configuration: &str) -> Said {
    world.place.write("config.toml", configuration);
    run(comity().args(["reload", "--state-dir"]).arg(world.place.state()))
}

fn applied(said: &Said) {
    assert_eq!(
        (said.code, &*said.out),
        (Some(0), "reloaded; exports in force: 1\n"),
        "{}",
        said.err
    );
}

/// Asserts that a reload was refused for this reason.
fn is_refused(said: &Said, why: &str) {
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.err.contains(why), "{}", said.err);
}

/// Writes stripe units of a file by its layout, the first of them with this number.
fn write_units(stores: &mut [Four], (file, held): (&Opened, &Layout), first: u64, data: &[u8]) {
    for (at, unit) in (first..).zip(data.chunks(UNIT as usize)) {
        let on = at as usize % held.handles.len();
        write(&mut stores[on], &held.handles[on], file.stateid, (at * UNIT, unit)).unwrap();
    }
}

/// The names of the data servers that `comity placement status` shows.
fn names(world: &World) -> Vec<String> {
    let servers = shown(&world.place);
    servers.iter().map(|server| server["name"].as_str().unwrap().to_owned()).collect()
}

/// The clientids by which the first data server knows its metadata server and clients.
fn clientids(world: &World) -> Value {
    let mut clients = comity();
    let said =
        run(clients.args(["clients", "--json", "--state-dir"]).arg(world.place.path("state-a")));
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    let ids = answer.as_array().unwrap().iter().map(|client| client["client"].clone());
    assert!(ids.len() > 0 && ids.clone().all(|id| id.is_string()), "{answer}");
    ids.collect()
}

/// A data server besides those of a world.
fn third(world: &World) -> Running {
    fs::create_dir(world.place.path("c")).unwrap();
    store_of(&world.place, "c", 0)
}

/// Connections to data servers, as a client of this name.
fn connect(client: &str, ports: &[u16]) -> Vec<Four> {
    ports.iter().map(|port| Four::connect(*port, 1000, client)).collect()
}

/// Returns whether the threshold that a client is told for a file has this size in bytes.
fn is_told(client: &mut Four, file: &Opened, bytes: u64) -> bool {
    let wanted = Bitmap4::of(&[attribute::MDSTHRESHOLD]);
    let told = client.perform(on(&file.handle, operation(op::GETATTR, &wanted))).unwrap();
    told.windows(8).any(|found| found == bytes.to_be_bytes())
}

/// The bytes of a file, as a client of NFSv3 reads them through the metadata server.
fn read(world: &World, file: &Opened) -> Vec<u8> {
    Raw::connect(world.mds.port, 0).read(&file.handle).unwrap()
}

/// A drain of a data server that goes on for as long as this lives.
struct Drain(Child);

impl Drain {
    fn begin(world: &World, server: &str) -> Self {
        let mut command = comity();
        command.args(["placement", "drain", server, "--state-dir"]).arg(world.place.state());
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Drain {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Asserts that the write of a byte is refused soon, because the file is being moved.
fn is_moving(client: &mut Four, file: &Opened) {
    let until = Instant::now() + PATIENCE;
    while write(client, &file.handle, file.stateid, (0, b"x")) != Err(Nfsstat4::Delay) {
        assert!(Instant::now() < until, "the move does not begin");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn an_export_that_comes_back_knows_of_the_move_of_a_file_that_is_under_way() {
    let world = World::new();
    let [a, b] = world.stores.each_ref().map(|it| it.port);
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    // It takes hours to copy the zeros in front of the byte.
    write(&mut client, &file.handle, file.stateid, (1 << 40, b"x")).unwrap();
    let draining = [("a", a, ""), ("b", b, ", draining = true")];
    applied(&reload(&world, &draining));
    let _drain = Drain::begin(&world, "b");
    is_moving(&mut client, &file);

    let with = config_with(&world.place, &entries(&draining));
    let gone = reload_text(&world, "");
    assert_eq!((gone.code, &*gone.out), (Some(0), "reloaded; exports in force: 0\n"));
    applied(&reload_text(&world, &with));
    let late = write(&mut client, &file.handle, file.stateid, (0, b"late"));
    assert_eq!(late, Err(Nfsstat4::Delay), "the move would not copy this");

    let link = world.place.path("link");
    std::os::unix::fs::symlink(world.place.data(), &link).unwrap();
    let (old, new) = (format!("{:?}", world.place.data()), format!("{link:?}"));
    applied(&reload_text(&world, &with.replace(&old, &new)));
    let file = client.open(&link.join("f"), BOTH).unwrap();
    let late = write(&mut client, &file.handle, file.stateid, (0, b"late"));
    assert_eq!(late, Err(Nfsstat4::Delay), "the move would not copy this");
    let crossing = with.replace("\"rw\"", "\"rw\", \"crossmnt\"");
    is_refused(&reload_text(&world, &crossing), "does not change crossmnt of an export with a");
}

#[test]
fn a_reload_adds_a_data_server_while_a_file_is_written_by_a_layout() {
    let world = World::new();
    let [a, b] = world.stores.each_ref().map(|it| it.port);
    let mut client = world.client();
    let file = client.open(&world.file("old"), BOTH).unwrap();
    let held = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    let whole = text(6 * UNIT);
    let mut stores = connect("client", &[a, b]);
    write_units(&mut stores, (&file, &held), 0, &whole[..3 * UNIT as usize]);
    let known = clientids(&world);

    let store = third(&world);
    applied(&reload(&world, &[("a", a, ""), ("b", b, ""), ("c", store.port, "")]));
    assert_eq!(names(&world), ["a", "b", "c"]);
    assert_eq!(clientids(&world), known, "the connection to a data server is kept");
    assert_eq!(ports(&mut client, held.device), [a, b], "a device that clients know stays known");
    write_units(&mut stores, (&file, &held), 3, &whole[3 * UNIT as usize..]);
    assert_eq!(commit(&mut client, &file, &held, 6 * UNIT), Some(6 * UNIT));
    assert!(read(&world, &file) == whole);

    let new = client.open(&world.file("new"), BOTH).unwrap();
    let wide = layout(&mut client, &new, Layoutiomode4::Rw).unwrap();
    assert_eq!(ports(&mut client, wide.device), [a, b, store.port]);
    write_units(&mut connect("again", &[a, b, store.port]), (&new, &wide), 0, &whole);
    commit(&mut client, &new, &wide, 6 * UNIT);
    assert!(read(&world, &new) == whole);
    assert_eq!(fs::read_dir(world.place.path("c")).unwrap().count(), 1);
    let again = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    assert_eq!(again.handles, held.handles, "old files stay where they are, and unfenced");
}

#[test]
fn a_data_server_is_drained_and_taken_out_by_reloads_while_its_file_is_open() {
    let world = World::new();
    let [a, b] = world.stores.each_ref().map(|it| it.port);
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    let held = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    is_refused(&reload(&world, &[("a", a, "")]), "leave it in with draining = true, reload");

    applied(&reload(&world, &[("a", a, ""), ("b", b, ", draining = true")]));
    let whole = text(4 * UNIT);
    write_units(&mut connect("client", &[a, b]), (&file, &held), 0, &whole);
    let refused = reload(&world, &[("a", a, "")]);
    is_refused(&refused, "run `comity placement drain b` before it is taken out");
    assert_eq!(names(&world), ["a", "b"], "the old configuration stays in force");
    assert_eq!(ports(&mut client, held.device), [a, b]);
    commit(&mut client, &file, &held, 4 * UNIT);
    give_back(&mut client, &file, &held);
    let drained = placement(&world.place, &["drain", "b"]);
    assert_eq!(drained.code, Some(0), "{}{}", drained.out, drained.err);

    applied(&reload(&world, &[("a", a, "")]));
    assert_eq!(names(&world), ["a"]);
    let mut late = Four::connect(b, 1000, "late");
    let late = write(&mut late, &held.handles[1], file.stateid, (UNIT, b"late"));
    assert_eq!(late, Err(Nfsstat4::Stale));
    let held = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    assert_eq!(ports(&mut client, held.device), [a]);
    write(&mut client, &file.handle, file.stateid, (0, b"still open")).unwrap();
    assert!(read(&world, &file) == [b"still open", &whole[10..]].concat());
}

#[test]
fn files_without_data_on_a_data_server_are_drained_too_before_a_reload_takes_it_out() {
    let world = World::new();
    let [a, b] = world.stores.each_ref().map(|it| it.port);
    let mut client = world.client();
    let files = ["empty", "short"].map(|name| client.open(&world.file(name), BOTH).unwrap());
    write(&mut client, &files[1].handle, files[1].stateid, (0, b"on a only")).unwrap();
    applied(&reload(&world, &[("a", a, ""), ("b", b, ", draining = true")]));
    assert_eq!(fs::read_dir(world.place.path("b")).unwrap().count(), 0);
    let refused = reload(&world, &[("a", a, "")]);
    is_refused(&refused, "files without data on data server b may still name it: run `comity");
    let drained = placement(&world.place, &["drain", "b"]);
    assert!(drained.out.starts_with("2 files moved, 9 bytes"), "{}{}", drained.out, drained.err);

    applied(&reload(&world, &[("a", a, "")]));
    for file in &files {
        write(&mut client, &file.handle, file.stateid, (UNIT, b"second unit")).unwrap();
        let held = layout(&mut client, file, Layoutiomode4::Rw).unwrap();
        assert_eq!(ports(&mut client, held.device), [a]);
    }
    assert!(read(&world, &files[1]).starts_with(b"on a only\0"));
}

#[test]
fn the_stripe_unit_and_the_threshold_change_by_a_reload() {
    let world = World::new();
    let [a, b] = world.stores.each_ref().map(|it| it.port);
    let before = config_with(&world.place, &entries(&[("a", a, ""), ("b", b, "")]));
    let after = before.replace("stripe_unit_bytes = 65536", "stripe_unit_bytes = 131072");
    let after = after.replace("read_file_bytes = 100000", "read_file_bytes = 200000");
    let mut client = world.client();
    let file = client.open(&world.file("old"), BOTH).unwrap();
    assert_eq!([100_000, 200_000].map(|it| is_told(&mut client, &file, it)), [true, false]);
    applied(&reload_text(&world, &after));
    assert_eq!([100_000, 200_000].map(|it| is_told(&mut client, &file, it)), [false, true]);
    let file = client.open(&world.file("f"), BOTH).unwrap();
    write(&mut client, &file.handle, file.stateid, (0, &text(2 * UNIT))).unwrap();
    assert_eq!(fs::read_dir(world.place.path("b")).unwrap().count(), 0, "it is one unit on a");
    assert!(read(&world, &file) == text(2 * UNIT));
}

#[test]
fn a_file_stays_on_the_metadata_server_until_it_grows_or_is_written_by_a_layout() {
    let world = World::new();
    let [a, b] = world.stores.each_ref().map(|it| it.port);
    let before = config_with(&world.place, &entries(&[("a", a, ""), ("b", b, "")]));
    let threshold = format!("write_file_bytes = {UNIT}, read_file_bytes");
    applied(&reload_text(&world, &before.replace("read_file_bytes", &threshold)));
    let mut client = world.client();
    let files = ["f", "g"].map(|name| client.open(&world.file(name), BOTH).unwrap());
    for file in &files {
        write(&mut client, &file.handle, file.stateid, (0, &text(100))).unwrap();
        let refused = layout(&mut client, file, Layoutiomode4::Read).map(drop);
        assert_eq!(refused, Err(Nfsstat4::LayoutUnavailable));
    }
    let stored = || fs::read_dir(world.place.path("a")).unwrap().count();
    assert_eq!((stored(), read(&world, &files[0])), (0, text(100)));
    write(&mut client, &files[0].handle, files[0].stateid, (100, &text(2 * UNIT)[100..])).unwrap();
    assert_eq!(stored(), 1, "a write has made the file longer than the threshold");
    assert!(read(&world, &files[0]) == text(2 * UNIT));
    layout(&mut client, &files[0], Layoutiomode4::Read).unwrap();
    layout(&mut client, &files[1], Layoutiomode4::Rw).unwrap();
    assert_eq!((stored(), read(&world, &files[1])), (2, text(100)));
    let own = fs::read(world.place.data().join("g")).unwrap();
    assert_eq!(own, [0; 100], "the bytes are on data servers only");
    let said = placement(&world.place, &["check"]);
    assert_eq!((said.out.as_str(), said.code), ("2 files: all right\n", Some(0)), "{}", said.err);
}

#[test]
fn a_reload_refuses_what_it_cannot_change_and_says_what_to_do() {
    let world = World::new();
    let [a, b] = world.stores.each_ref().map(|it| it.port);
    let lost = third(&world);
    let port = lost.port;
    lost.stop();
    let refused = reload(&world, &[("a", a, ""), ("b", b, ""), ("c", port, "")]);
    is_refused(&refused, "data server c: start it by `comity serve --data-server`");
    is_refused(
        &reload(&world, &[("a", a, ""), ("b", port, "")]),
        "data server b: a reload does not",
    );
    let good = config_with(&world.place, &entries(&[("a", a, ""), ("b", b, "")]));
    let (export, _) = good.split_once("[[placement]]").unwrap();
    is_refused(&reload_text(&world, export), "neither adds nor removes it: restart the server");
    let key = fs::read(world.place.path("key")).unwrap();
    fs::write(world.place.path("key"), "000102030405060708090a0b0c0d0e10\n").unwrap();
    is_refused(&reload_text(&world, &good), "does not change the key of a placement");
    fs::write(world.place.path("key"), key).unwrap();
    let crossing = good.replace("\"rw\"", "\"rw\", \"crossmnt\"");
    is_refused(&reload_text(&world, &crossing), "does not change crossmnt of an export with a");
    applied(&reload_text(&world, &good));
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    write(&mut client, &file.handle, file.stateid, (0, &text(2 * UNIT))).unwrap();
    assert_eq!(world.stored().map(|bytes| bytes.len() as u64), [UNIT, 2 * UNIT]);
}
