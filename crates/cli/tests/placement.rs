//! Files in stripes on two data servers behind a metadata server: `[[placement]]` and `comity serve
//! --data-server`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

mod common;

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use comity_proto::nfs4::{
    Bitmap4, Fattr4, Layoutiomode4, Nfsstat4, Read4args, StableHow4, Stateid4, ThresholdItem4,
    Write4args, Write4resok, attribute, layout_type, operation as op, share, threshold,
};
use comity_proto::{mount, nfs3, nlm, nsm};
use comity_rpc::AuthStat;
use comity_xdr::{Counted, Decoder, Opaque};
use common::four::{Four, Opened, bare, operation, result, skip, walk};
use common::placed::{
    BOTH, Layout, UNIT, World, commit, config, give_back, layout, on, ports, store_for, store_of,
    text, write,
};
use common::raw::{MOUNT, NFS, Raw, stream_from};
use common::{PATIENCE, Place, Running, comity, run};

/// The address of a host that the data servers do not list.
const UNLISTED: [u8; 4] = [127, 0, 0, 2];

/// The bytes of a file that one of two data servers has, with zeros in the other's stripe units.
fn half(whole: &[u8], server: usize) -> Vec<u8> {
    let units = whole.chunks(UNIT as usize).enumerate();
    let last = units.clone().filter(|(at, _)| at % 2 == server).map(|(at, _)| at).max().unwrap();
    let units = units.take(last + 1);
    units
        .flat_map(|(at, unit)| if at % 2 == server { unit.to_vec() } else { vec![0; unit.len()] })
        .collect()
}

#[test]
fn a_client_writes_by_a_layout_and_others_read_the_same_bytes_through_the_metadata_server() {
    let world = World::new();
    let mut client = world.client();
    let file = client.open(&world.file("f"), share::READ | share::WRITE).unwrap();
    let layout = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    assert_eq!(ports(&mut client, layout.device), world.stores.each_ref().map(|it| it.port));
    let mut stores = world.stores.each_ref().map(|it| Four::connect(it.port, 1000, "client"));
    let whole = text(3 * UNIT + 1000);
    for (at, unit) in whole.chunks(UNIT as usize).enumerate() {
        let place = (at as u64 * UNIT, unit);
        write(&mut stores[at % 2], &layout.handles[at % 2], file.stateid, place).unwrap();
    }
    let size = whole.len() as u64;
    assert_eq!(commit(&mut client, &file, &layout, size), Some(size));
    assert_eq!(
        commit(&mut client, &file, &layout, size / 2),
        None,
        "LAYOUTCOMMIT does not shrink a file"
    );
    assert!(world.stored() == [half(&whole, 0), half(&whole, 1)]);
    let own = fs::read(world.file("f")).unwrap();
    assert!(own == vec![0; whole.len()], "the metadata server has the size and no bytes");
    let mut third = Raw::connect(world.mds.port, 0);
    assert!(third.read(&file.handle).unwrap() == whole, "NFSv3 through the metadata server");
    give_back(&mut client, &file, &layout);
    remove(&mut client, &world);
    for name in ["a", "b"] {
        assert_eq!(fs::read_dir(world.place.path(name)).unwrap().count(), 0, "removed on {name}");
    }
}

fn remove(client: &mut Four, world: &World) {
    let mut operations = walk(&world.place.data());
    operations.push(operation(op::REMOVE, &Opaque::<255>(b"f")));
    client.perform(operations).unwrap();
}

#[test]
fn bytes_written_through_the_metadata_server_are_on_the_data_servers() {
    let world = World::new();
    let mut client = world.client();
    let file = client.open(&world.file("f"), share::READ | share::WRITE).unwrap();
    let whole = text(2 * UNIT + 10);
    write(&mut client, &file.handle, file.stateid, (0, &whole)).unwrap();
    assert!(world.stored() == [half(&whole, 0), half(&whole, 1)]);
    let layout = layout(&mut client, &file, Layoutiomode4::Read).unwrap();
    let mut store = Four::connect(world.stores[1].port, 1000, "client");
    let args = Read4args { stateid: file.stateid, offset: UNIT, count: UNIT as u32 };
    let results = store.perform(on(&layout.handles[1], operation(op::READ, &args))).unwrap();
    assert!(results.ends_with(&whole[UNIT as usize..2 * UNIT as usize]));
}

/// FILE_SYNC4 would say that the metadata server knows the size, too.
#[test]
fn a_data_server_says_of_stable_data_that_only_the_data_are_stable() {
    let world = World::new();
    let mut client = world.client();
    let file = client.open(&world.file("f"), share::READ | share::WRITE).unwrap();
    let layout = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    let mut store = Four::connect(world.stores[0].port, 1000, "client");
    for (stable, committed) in [
        (StableHow4::FileSync, StableHow4::DataSync),
        (StableHow4::DataSync, StableHow4::DataSync),
        (StableHow4::Unstable, StableHow4::Unstable),
    ] {
        let args = Write4args { stateid: file.stateid, offset: 0, stable, data: Opaque(b"data") };
        let write = on(&layout.handles[0], operation(op::WRITE, &args));
        let results = store.perform(write).unwrap();
        let mut results = Decoder::new(&results);
        skip(&mut results);
        assert_eq!(result::<Write4resok>(&mut results).committed, committed);
    }
}

#[test]
fn clients_are_told_for_which_files_to_use_the_metadata_server() {
    let world = World::new();
    let mut client = world.client();
    let file = client.open(&world.file("f"), share::READ | share::WRITE).unwrap();
    let wanted = Bitmap4::of(&[attribute::MDSTHRESHOLD]);
    let results = client.perform(on(&file.handle, operation(op::GETATTR, &wanted))).unwrap();
    let mut results = Decoder::new(&results);
    skip(&mut results);
    let told: Fattr4<'_> = result(&mut results);
    assert_eq!(told.attrmask, wanted);
    let all: Counted<ThresholdItem4<'_>, 1> = Decoder::new(told.attr_vals.0).value().unwrap();
    let hintset = Bitmap4::of(&[threshold::READ_SIZE, threshold::WRITE_IO_SIZE]);
    let sizes = [100_000_u64, 4096].map(u64::to_be_bytes).concat();
    let hintlist = Opaque(sizes.as_slice());
    let item = ThresholdItem4 { layout_type: layout_type::FILES, hintset, hintlist };
    assert_eq!(all.0, [item]);
}

#[test]
fn a_data_server_takes_no_more_than_the_layout_allows() {
    let world = World::new();
    let mut client = world.client();
    let file = client.open(&world.file("f"), share::READ | share::WRITE).unwrap();
    let reading = layout(&mut client, &file, Layoutiomode4::Read).unwrap();
    let writing = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    let elsewhere = stream_from(UNLISTED, world.stores[0].port);
    let mut store = Four::try_on(elsewhere, 0, "client").unwrap();
    let mut write = |handle: &[u8]| write(&mut store, handle, file.stateid, (0, b"data"));
    assert_eq!(write(&reading.handles[0]), Err(Nfsstat4::RoFs), "a layout for reading");
    let own = &writing.handles[0][26..];
    assert_eq!(write(own), Err(Nfsstat4::Access), "the data server's own handle");
    let mut forged = reading.handles[0].clone();
    forged[1] = 1;
    assert_eq!(write(&forged), Err(Nfsstat4::BadHandle), "a handle that was changed");
    assert_eq!(write(&writing.handles[1]), Err(Nfsstat4::BadHandle), "of the other data server");
    assert_eq!(write(&writing.handles[0]), Ok(()));
    let remove = operation(op::REMOVE, &Opaque::<255>(b"f"));
    assert_eq!(store.perform(on(&writing.handles[0], remove)), Err(Nfsstat4::Access));
    let mut third = Raw::connect(world.mds.port, 0);
    assert_eq!(
        third.read(&writing.handles[0]),
        Err(10_001),
        "the metadata server accepts no handle of a data server"
    );
}

#[test]
fn a_data_server_takes_only_nfsv4_from_a_peer_that_it_does_not_list() {
    let world = World::new();
    let port = world.stores[0].port;
    let programs = [(MOUNT, mount::procedure::EXPORT), (NFS, nfs3::procedure::GETATTR)];
    let monitors = [(nlm::PROGRAM, nlm::procedure::UNLOCK), (nsm::PROGRAM, nsm::procedure::NOTIFY)];
    for (program, procedure) in programs.into_iter().chain(monitors) {
        let mut unlisted = Raw::connect_from(UNLISTED, port, 0);
        let why = unlisted.denied(program, procedure);
        assert_eq!(why, AuthStat::BadCred as u32, "{program}, {procedure}");
    }
    let unlisted = stream_from(UNLISTED, port);
    let mut unlisted = Four::try_on(unlisted, 0, "unlisted").unwrap();
    let stored = world.place.path("a");
    assert_eq!(unlisted.perform(walk(&stored)), Err(Nfsstat4::NoEnt), "NFSv4 shows no export");
}

/// Other servers answer such a peer one call a second.
#[test]
fn a_client_that_a_data_server_does_not_list_is_served_without_pauses() {
    let world = World::new();
    let mut unlisted = Four::try_on(stream_from(UNLISTED, world.stores[0].port), 0, "it").unwrap();
    let begun = Instant::now();
    for _ in 0..50 {
        unlisted.perform(vec![bare(op::PUTROOTFH)]).unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// The status of NFSv3 that makes a client repeat its call.
const JUKEBOX: u32 = 10_008;

/// Repeats a call of NFSv3 as long as the server says so; returns the last answer.
fn repeated(mut call: impl FnMut() -> Result<(), u32>) -> Result<(), u32> {
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = call();
        if answer != Err(JUKEBOX) || Instant::now() > until {
            return answer;
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Waits until a data server answers a write by a handle with this error.
fn refused_in_time(store: &mut Four, handle: &[u8], stateid: Stateid4, error: Nfsstat4) {
    let until = Instant::now() + PATIENCE;
    while write(store, handle, stateid, (0, b"late")) != Err(error) {
        assert!(Instant::now() < until, "the handle is still good");
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_handles_of_an_evicted_client_are_refused_and_others_go_on() {
    let world = World::new();
    let (mut client, mut other) = (world.client(), Four::connect(world.mds.port, 0, "other"));
    let file = client.open(&world.file("f"), BOTH).unwrap();
    let its = other.open(&world.file("f"), BOTH).unwrap();
    let held = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    let mut store = Four::connect(world.stores[0].port, 1000, "client");
    write(&mut store, &held.handles[0], file.stateid, (0, b"data")).unwrap();
    let id = format!("{:016x}", client.clientid);
    let said = run(comity().args(["evict", &id, "--state-dir"]).arg(world.place.state()));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    refused_in_time(&mut store, &held.handles[0], file.stateid, Nfsstat4::Stale);
    let until = Instant::now() + PATIENCE;
    let fresh = loop {
        match layout(&mut other, &its, Layoutiomode4::Rw) {
            Err(Nfsstat4::RecallConflict) if Instant::now() < until => {}
            got => break got.unwrap(),
        }
    };
    write(&mut store, &fresh.handles[0], its.stateid, (0, b"more")).unwrap();
    assert_eq!(
        write(&mut store, &held.handles[0], file.stateid, (0, b"late")),
        Err(Nfsstat4::Stale)
    );
    assert_eq!(world.stored()[0], b"more");
}

#[test]
fn the_fence_of_a_file_outlives_a_restart_of_its_data_server() {
    let world = World::new();
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    let held = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    let id = format!("{:016x}", client.clientid);
    run(comity().args(["evict", &id, "--state-dir"]).arg(world.place.state()));
    let mut store = Four::connect(world.stores[0].port, 1000, "client");
    refused_in_time(&mut store, &held.handles[0], file.stateid, Nfsstat4::Stale);
    let World { place, stores: [one, _other], mds: _mds } = world;
    one.stop();
    let one = store_of(&place, "a", 0);
    let mut store = Four::connect(one.port, 1000, "client");
    let late = write(&mut store, &held.handles[0], file.stateid, (0, b"late"));
    assert_eq!(late, Err(Nfsstat4::Stale));
}

/// Opens a file as soon as the grace period of a restarted server is over.
fn open_after_grace(client: &mut Four, path: &Path) -> Opened {
    let until = Instant::now() + PATIENCE;
    loop {
        match client.open(path, BOTH) {
            Err(Nfsstat4::Grace) if Instant::now() < until => {
                thread::sleep(Duration::from_millis(200));
            }
            opened => return opened.unwrap(),
        }
    }
}

#[test]
fn handles_from_before_a_restart_of_the_metadata_server_end_with_its_first_layout() {
    let lease = ["--lease-seconds", "2"];
    let world = World::with(&lease);
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    let mut third = Raw::connect(world.mds.port, 0);
    for mode in [0o600, 0o640] {
        let held = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
        give_back(&mut client, &file, &held);
        third.setattr(&file.handle, (Some(mode), None)).unwrap();
    }
    let held = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    let mut store = Four::connect(world.stores[0].port, 1000, "client");
    let written = write(&mut store, &held.handles[0], file.stateid, (0, b"before"));
    assert_eq!(written, Ok(()));
    let path = world.file("f");
    let World { place, stores: _stores, mds } = world;
    mds.stop();
    let config = place.path("config.toml");
    let mds = Running::start(place.serve(&["--config"]).arg(config).args(lease));
    let mut other = Four::connect(mds.port, 0, "other");
    let file = open_after_grace(&mut other, &path);
    layout(&mut other, &file, Layoutiomode4::Rw).unwrap();
    let late = write(&mut store, &held.handles[0], file.stateid, (0, b"late"));
    assert_eq!(late, Err(Nfsstat4::Stale));
}

#[test]
fn a_change_of_the_mode_waits_for_the_layouts_of_others_and_their_handles_end() {
    let world = World::new();
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    let held = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    let mut third = Raw::connect(world.mds.port, 0);
    let mut chmod = || third.setattr(&file.handle, (Some(0o600), None));
    assert_eq!(chmod(), Err(JUKEBOX));
    assert!(client.listen(PATIENCE, |client| !client.recalled_layouts.is_empty()));
    let recalled = client.recalled_layouts[0];
    assert_eq!(recalled.other, held.stateid.other);
    assert_eq!(recalled.seqid, held.stateid.seqid + 1, "a recall counts (RFC 8881, 12.5.3)");
    let refused = layout(&mut client, &file, Layoutiomode4::Rw).err();
    assert_eq!(refused, Some(Nfsstat4::RecallConflict), "no layout during a recall");
    give_back(&mut client, &file, &Layout { stateid: recalled, ..held.clone() });
    assert_eq!(chmod(), Ok(()));
    let mut store = Four::connect(world.stores[0].port, 1000, "client");
    let late = write(&mut store, &held.handles[0], file.stateid, (0, b"late"));
    assert_eq!(late, Err(Nfsstat4::Stale), "the client may have lost its right");
}

#[test]
fn a_silent_client_delays_a_truncation_for_a_bounded_time_and_loses_its_handles() {
    let world = World::with(&["--lease-seconds", "2"]);
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    let held = layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    let mut third = Raw::connect(world.mds.port, 0);
    let mut cut = || third.setattr(&file.handle, (None, Some(0)));
    assert_eq!(cut(), Err(JUKEBOX));
    assert_eq!(repeated(cut), Ok(()));
    for (at, handle) in held.handles.iter().enumerate() {
        let mut store = Four::connect(world.stores[at].port, 1000, "client");
        let late = write(&mut store, handle, file.stateid, (at as u64 * UNIT, b"late"));
        assert_eq!(late, Err(Nfsstat4::Stale), "data server {at}");
    }
}

#[test]
fn a_metadata_server_serves_while_a_data_server_is_down_and_finds_it_later() {
    let world = World::new();
    let whole = text(2 * UNIT);
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    write(&mut client, &file.handle, file.stateid, (0, &whole)).unwrap();
    fs::write(world.file("own"), "own data").unwrap();
    let World { place, stores: [one, two], mds } = world;
    let ports = [one.port, two.port];
    mds.stop();
    two.stop();
    let mds = Running::start(place.serve(&["--config"]).arg(place.path("config.toml")));
    let mut third = Raw::connect(mds.port, 0);
    let top = third.mount(&place.data()).unwrap();
    let own = third.lookup(&top, b"own").unwrap();
    assert_eq!(third.read(&own).unwrap(), b"own data");
    let placed = third.lookup(&top, b"f").unwrap();
    assert_eq!(third.read(&placed), Err(JUKEBOX), "its second unit is on the lost server");
    let _two = store_of(&place, "b", ports[1]);
    let mut found = Vec::new();
    let read = || third.read(&placed).map(|bytes| found = bytes);
    assert_eq!(repeated(read), Ok(()));
    assert!(found == whole);
    drop(one);
}

#[test]
fn data_servers_that_are_silent_at_the_start_are_waited_for_together() {
    let silent = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    let ports = silent.each_ref().map(|it| it.local_addr().unwrap().port());
    let place = Place::new();
    let key = place.write("key", "000102030405060708090a0b0c0d0e0f\n");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let config = place.write("config.toml", &config(&place, ports));
    let begun = Instant::now();
    let mds = Running::start(place.serve(&["--config"]).arg(config));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(8), "{took:?}");
    mds.stop();
}

#[test]
fn calls_to_a_data_server_that_is_known_to_be_lost_fail_at_once() {
    let world = World::new();
    let whole = text(2 * UNIT);
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    write(&mut client, &file.handle, file.stateid, (0, &whole)).unwrap();
    let mut third = Raw::connect(world.mds.port, 0);
    let World { place, stores: [_one, two], mds: _mds } = world;
    let port = two.port;
    two.stop();
    assert_eq!(third.read(&file.handle), Err(JUKEBOX), "this call finds out");
    let begun = Instant::now();
    for _ in 0..3 {
        assert_eq!(third.read(&file.handle), Err(JUKEBOX));
    }
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    let _two = store_of(&place, "b", port);
    let mut found = Vec::new();
    assert_eq!(repeated(|| third.read(&file.handle).map(|bytes| found = bytes)), Ok(()));
    assert!(found == whole);
}

fn handle_of(client: &mut Four, path: &Path) -> Vec<u8> {
    let mut operations = walk(path);
    let steps = operations.len();
    operations.push(bare(op::GETFH));
    let results = client.perform(operations).unwrap();
    let mut results = Decoder::new(&results);
    (0..=steps).for_each(|_| skip(&mut results));
    results.opaque(128).unwrap().to_vec()
}

/// Asserts that no data server has a file.
fn nothing_stored(world: &World) {
    for name in ["a", "b"] {
        assert_eq!(fs::read_dir(world.place.path(name)).unwrap().count(), 0, "on {name}");
    }
}

#[test]
fn a_refused_layoutget_leaves_no_file_on_a_data_server() {
    let world = World::new();
    let mut client = world.client();
    let file = client.open(&world.file("f"), BOTH).unwrap();
    fs::set_permissions(world.file("f"), Permissions::from_mode(0o644)).unwrap();
    let mut other = Four::connect(world.mds.port, 1000, "other");
    let reader = other.open(&world.file("f"), share::READ | share::WANT_NO_DELEG).unwrap();
    let unknown = Opened { stateid: Stateid4 { other: [7; 12], ..file.stateid }, ..file.clone() };
    let special = Opened { stateid: Stateid4 { seqid: 0, other: [0; 12] }, ..file.clone() };
    let directory = Opened { handle: handle_of(&mut client, &world.place.data()), ..file.clone() };
    let rw = Layoutiomode4::Rw;
    assert_eq!(layout(&mut client, &unknown, rw).err(), Some(Nfsstat4::BadStateid));
    assert_eq!(layout(&mut client, &special, rw).err(), Some(Nfsstat4::BadStateid));
    assert_eq!(layout(&mut client, &directory, rw).err(), Some(Nfsstat4::WrongType));
    assert_eq!(layout(&mut client, &file, Layoutiomode4::Any).err(), Some(Nfsstat4::BadIoMode));
    assert_eq!(layout(&mut other, &reader, rw).err(), Some(Nfsstat4::Access));
    nothing_stored(&world);
    fs::set_permissions(world.file("f"), Permissions::from_mode(0o666)).unwrap();
    assert_eq!(layout(&mut other, &reader, rw).err(), Some(Nfsstat4::OpenMode));
    nothing_stored(&world);
    layout(&mut client, &file, rw).unwrap();
}

#[test]
fn a_file_that_was_there_before_stays_on_the_metadata_server() {
    let world = World::new();
    fs::write(world.file("old"), "old data").unwrap();
    let mut client = world.client();
    let file = client.open(&world.file("old"), share::READ).unwrap();
    let refused = layout(&mut client, &file, Layoutiomode4::Read).err();
    assert_eq!(refused, Some(Nfsstat4::LayoutUnavailable));
    assert_eq!(Raw::connect(world.mds.port, 0).read(&file.handle).unwrap(), b"old data");
}

#[test]
fn check_names_the_data_server_that_does_not_answer_and_what_to_do() {
    let place = Place::new();
    let key = place.write("key", "000102030405060708090a0b0c0d0e0f\n");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    let config = place.write("config.toml", &config(&place, [1, 1]));
    let said = run(comity().args(["check", "--config"]).arg(config));
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    let all = format!("{}{}", said.out, said.err);
    assert!(all.contains("data server a: start it by `comity serve --data-server`"), "{all}");
}

#[test]
fn check_names_the_data_server_that_is_for_another_metadata_server() {
    let place = Place::new();
    let key = place.write("key", "000102030405060708090a0b0c0d0e0f\n");
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    ["a", "b"].iter().for_each(|name| fs::create_dir(place.path(name)).unwrap());
    let [a, b] =
        [("127.0.0.1", "a"), ("127.0.0.9", "b")].map(|it| store_for(it.0, &place, it.1, 0));
    let config = place.write("config.toml", &config(&place, [a.port, b.port]));
    let said = run(comity().args(["check", "--config"]).arg(config));
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    let all = format!("{}{}", said.out, said.err);
    assert!(all.contains("data server b: "), "{all}");
    assert!(all.contains("does not let this server put files there"), "{all}");
}
