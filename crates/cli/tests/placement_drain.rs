//! `comity placement drain` moves the files of a data server to others, while clients go on.
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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use comity_proto::nfs4::{Layoutiomode4, Nfsstat4};
use common::four::{Four, Opened};
use common::placed::{
    BOTH, Layout, UNIT, commit, config_with, give_back, layout, placement, store_of, text,
    try_commit, write,
};
use common::raw::Raw;
use common::{PATIENCE, Place, Running, Said, comity, run, wait_until};
use serde_json::Value;

const NAMES: [&str; 3] = ["a", "b", "c"];

/// A metadata server and its three data servers.
struct Trio {
    place: Place,
    stores: [Running; 3],
    mds: Running,
}

impl Trio {
    fn new() -> Self {
        let place = Place::new();
        let key = place.write("key", "000102030405060708090a0b0c0d0e0f\n");
        fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
        let stores = NAMES.map(|name| {
            fs::create_dir(place.path(name)).unwrap();
            store_of(&place, name, 0)
        });
        let mds = start(&place, &stores, ["", "", ""]);
        Self { place, stores, mds }
    }

    /// Restarts the metadata server with these additions to the entries of the data servers.
    fn restarted<const N: usize>(self, more: [&str; N]) -> Self {
        let Self { place, stores, mds } = self;
        mds.stop();
        let mds = start(&place, &stores, more);
        Self { place, stores, mds }
    }

    /// Opens a file as soon as the grace period is over.
    fn open(&self, client: &mut Four, name: &str) -> Opened {
        patiently(|| client.open(&self.place.data().join(name), BOTH))
    }

    /// The bytes of a file, as a client of NFSv3 reads them.
    fn read(&self, name: &str) -> Vec<u8> {
        let mut third = Raw::connect(self.mds.port, 0);
        let top = third.mount(&self.place.data()).unwrap();
        let file = third.lookup(&top, name.as_bytes()).unwrap();
        third.read(&file).unwrap()
    }

    fn count(&self, store: &str) -> usize {
        fs::read_dir(self.place.path(store)).unwrap().count()
    }

    fn placement(&self, arguments: &[&str]) -> Said {
        placement(&self.place, arguments)
    }
}

fn start<const N: usize>(place: &Place, stores: &[Running], more: [&str; N]) -> Running {
    let entries = NAMES.iter().zip(stores).zip(more).map(|((name, store), more)| {
        let port = store.port;
        format!("  {{ name = \"{name}\", address = \"127.0.0.1:{port}\"{more} }},\n")
    });
    let config = place.write("config.toml", &config_with(place, &entries.collect::<String>()));
    let mut command = place.serve(&["--lease-seconds", "2", "--config"]);
    Running::start(command.arg(config))
}

/// Repeats a call of a client while it is told to try again.
fn patiently<T>(mut call: impl FnMut() -> Result<T, Nfsstat4>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        match call() {
            Err(Nfsstat4::Delay | Nfsstat4::Grace | Nfsstat4::LayoutTryLater)
                if Instant::now() < until =>
            {
                thread::sleep(Duration::from_millis(20));
            }
            answer => return answer.unwrap(),
        }
    }
}

/// Writes a whole file to data servers by a layout of them, as a client of this name.
fn write_by_layout(trio: &Trio, client: &str, (file, held): (&Opened, &Layout), whole: &[u8]) {
    let connect = |store: &Running| Four::connect(store.port, 1000, client);
    let mut stores: Vec<Four> = trio.stores.iter().map(connect).collect();
    for (at, unit) in whole.chunks(UNIT as usize).enumerate() {
        let (on, offset) = (at % held.handles.len(), at as u64 * UNIT);
        write(&mut stores[on], &held.handles[on], file.stateid, (offset, unit)).unwrap();
    }
}

/// The progress of [`keep_writing`], and a flag that ends it.
#[derive(Default)]
struct Writing {
    rounds: AtomicU64,
    stop: AtomicBool,
}

/// Writes to a file until it is told to stop, each time other bytes; returns the last ones.
fn keep_writing(client: &mut Four, file: &Opened, writing: &Writing) -> Vec<u8> {
    let (mut whole, mut round) = (text(4 * UNIT), 0_u64);
    let begun = Instant::now();
    while !writing.stop.load(Ordering::Relaxed) {
        assert!(begun.elapsed() < 4 * PATIENCE, "nobody stops the writer");
        let at = round % 4 * UNIT + round % 1000 * 8;
        let data = round.to_be_bytes();
        patiently(|| write(client, &file.handle, file.stateid, (at, &data)));
        whole[at as usize..][..8].copy_from_slice(&data);
        round += 1;
        writing.rounds.store(round, Ordering::Relaxed);
    }
    assert!(round > 10, "the writer hardly came to write");
    whole
}

#[test]
fn a_drain_moves_all_files_while_clients_use_them_and_loses_nothing() {
    let trio = Trio::new();
    let mut client = Four::connect(trio.mds.port, 0, "first");
    for name in ["through", "busy"] {
        let file = trio.open(&mut client, name);
        write(&mut client, &file.handle, file.stateid, (0, &text(4 * UNIT))).unwrap();
    }
    let file = trio.open(&mut client, "by-layout");
    let held = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    write_by_layout(&trio, "one", (&file, &held), &text(6 * UNIT + 100));
    commit(&mut client, &file, &held, 6 * UNIT + 100);
    let refused = trio.placement(&["drain", "c"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.err.contains("set draining = true for it"), "{}", refused.err);

    let trio = trio.restarted(["", "", ", draining = true"]);
    let status = trio.placement(&["status"]);
    assert!(status.out.lines().any(|line| line.contains("up, draining")), "{}", status.out);
    let mut holder = Four::connect(trio.mds.port, 0, "holder");
    let file = trio.open(&mut holder, "by-layout");
    let held = patiently(|| layout(&mut holder, &file, Layoutiomode4::Rw));
    assert_eq!(held.handles.len(), 3, "an old file is used on all data servers");
    let longer: Vec<u8> = text(9 * UNIT).into_iter().map(|byte| !byte).collect();
    write_by_layout(&trio, "two", (&file, &held), &longer);
    let mut other = Four::connect(trio.mds.port, 0, "writer");
    let busy = trio.open(&mut other, "busy");
    let writing = Writing::default();
    let (said, written) = thread::scope(|scope| {
        let writer = scope.spawn(|| keep_writing(&mut other, &busy, &writing));
        let drain = scope.spawn(|| trio.placement(&["drain", "c", "--json"]));
        assert!(holder.listen(PATIENCE, |client| !client.recalled_layouts.is_empty()));
        // The size is told to the metadata server only now.
        let stateid = holder.recalled_layouts[0];
        let recalled = Layout { stateid, ..held.clone() };
        patiently(|| try_commit(&mut holder, &file, &recalled, 9 * UNIT));
        give_back(&mut holder, &file, &recalled);
        let said = drain.join().unwrap();
        let rounds = || writing.rounds.load(Ordering::Relaxed);
        let before = rounds();
        wait_until("the file is written after the drain", || rounds() > before + 10);
        writing.stop.store(true, Ordering::Relaxed);
        (said, writer.join().unwrap())
    });
    let answer: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&answer["files"], &answer["is_drained"]), (&3.into(), &true.into()), "{answer}");
    assert_eq!((said.code, trio.count("c")), (Some(0), 0), "{answer} {}", said.err);
    assert_eq!((trio.count("a"), trio.count("b")), (3, 3));
    let mut store = Four::connect(trio.stores[2].port, 1000, "late");
    let late = write(&mut store, &held.handles[2], file.stateid, (2 * UNIT, b"late"));
    assert_eq!(late, Err(Nfsstat4::Stale));

    let again = trio.placement(&["drain", "c"]);
    let advice = "c is empty: take it out of the configuration and reload the metadata server";
    assert_eq!(again.out, format!("0 files moved, 0 bytes\n{advice}\n"), "{}", again.err);
    let trio = trio.restarted(["", ""]);
    assert!(trio.read("through") == text(4 * UNIT));
    assert!(trio.read("busy") == written);
    assert!(trio.read("by-layout") == longer);
    let said = trio.placement(&["check"]);
    assert_eq!((said.out.as_str(), said.code), ("3 files: all right\n", Some(0)), "{}", said.err);
}

#[test]
fn a_drain_loses_no_bytes_of_a_client_that_has_not_said_how_far_it_wrote() {
    let trio = Trio::new();
    trio.open(&mut Four::connect(trio.mds.port, 0, "first"), "f");
    let trio = trio.restarted(["", "", ", draining = true"]);
    let mut holder = Four::connect(trio.mds.port, 0, "holder");
    let file = trio.open(&mut holder, "f");
    let held = patiently(|| layout(&mut holder, &file, Layoutiomode4::Rw));
    write_by_layout(&trio, "one", (&file, &held), &text(6 * UNIT + 100));
    let said = thread::scope(|scope| {
        let drain = scope.spawn(|| trio.placement(&["drain", "c", "--json"]));
        assert!(holder.listen(PATIENCE, |client| !client.recalled_layouts.is_empty()));
        let stateid = holder.recalled_layouts[0];
        give_back(&mut holder, &file, &Layout { stateid, ..held.clone() });
        drain.join().unwrap()
    });
    assert_eq!((said.code, trio.count("c")), (Some(0), 0), "{} {}", said.out, said.err);
    assert!(trio.read("f") == text(6 * UNIT + 100));
}

#[test]
fn a_placement_needs_a_data_server_that_takes_new_files() {
    let place = Place::new();
    let entry = "  { name = \"a\", address = \"127.0.0.1:1\", draining = true },\n";
    let config = place.write("config.toml", &config_with(&place, entry));
    let said = run(comity().args(["check", "--config"]).arg(config));
    let all = format!("{}{}", said.out, said.err);
    assert!(all.contains("all data servers are draining; leave one that takes"), "{all}");
    assert_eq!(said.code, Some(1));
}
