//! Files that are mirrored on plain servers of NFSv3: `layout = "flexible-files"`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on ends"
)]

mod common;

use comity_proto::nfs4::flexible_files::{
    FfIoLatency4, FfLayoutupdate4, IoInfo4, Layoutstats4args,
};
use comity_proto::nfs4::{
    LayoutContent4, Layoutcommit4args, Layoutiomode4, Netaddr4, Nfsstat4, Nfstime4, Stateid4,
    layout_type, operation as op,
};
use comity_xdr::{Opaque, encoded};
use common::four::{Four, Opened, operation};
use common::mirrored::{
    FlexLayout, Mirrored, flex_layout, give_back_body, give_back_with, io_error, report, write3,
};
use common::placed::{BOTH, layout, on, placement, shown, write};
use common::raw::Raw;
use common::{is_root, run, wait_until};
use serde_json::Value;

/// The status of NFSv3 for a caller without a right.
const ACCES: u32 = 13;

/// A world with a client of minor version 2 and a file that it has opened.
fn begin() -> (Mirrored, Four, Opened) {
    let world = Mirrored::new();
    let mut client = Four::connect(world.mds.port, 0, "client");
    client.minor = 2;
    let file = client.open(&world.place.data().join("f"), BOTH).unwrap();
    (world, client, file)
}

/// Writes data to all mirrors of a layout, and commits it.
fn write_by(world: &Mirrored, client: &mut Four, file: &Opened, layout: &FlexLayout, data: &[u8]) {
    for mirror in &layout.mirrors {
        let at = world.server_of(client, mirror.device);
        write3(world.ports[at], mirror.uid, &mirror.handle, data).unwrap();
    }
    let layoutupdate = LayoutContent4 { layout_type: layout_type::FLEX_FILES, body: Opaque(&[]) };
    let args = Layoutcommit4args {
        offset: 0,
        length: u64::MAX,
        reclaim: false,
        stateid: layout.stateid,
        last_write_offset: Some(data.len() as u64 - 1),
        time_modify: None,
        layoutupdate,
    };
    client.perform(on(&file.handle, operation(op::LAYOUTCOMMIT, &args))).unwrap();
}

/// The numbers of files with a broken mirror on each plain server.
fn broken(world: &Mirrored) -> Vec<u64> {
    shown(&world.place).iter().map(|server| server["broken_files"].as_u64().unwrap()).collect()
}

/// Gets a layout as soon as the server gives one out again.
fn layout_in_time(client: &mut Four, file: &Opened, iomode: Layoutiomode4) -> FlexLayout {
    let mut got = None;
    wait_until("a layout", || {
        let again = [Nfsstat4::RecallConflict, Nfsstat4::Delay, Nfsstat4::LayoutTryLater];
        match flex_layout(client, file, iomode) {
            Err(status) if again.contains(&status) => false,
            layout => {
                got = Some(layout.unwrap());
                true
            }
        }
    });
    got.unwrap()
}

#[test]
fn a_client_writes_to_all_mirrors_and_others_read_the_same_bytes_through_the_server() {
    if !is_root() {
        return;
    }
    let (world, mut client, file) = begin();
    let refused = layout(&mut client, &file, Layoutiomode4::Rw).err();
    assert_eq!(refused, Some(Nfsstat4::UnknownLayoutType), "the files layout");
    let writing = flex_layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    assert_eq!(writing.mirrors.len(), 2);
    write_by(&world, &mut client, &file, &writing, b"mirrored");
    assert_eq!([world.stored(0), world.stored(1)], [b"mirrored", b"mirrored"]);
    let mut third = Raw::connect(world.mds.port, 0);
    assert_eq!(third.read(&file.handle).unwrap(), b"mirrored");
    write(&mut client, &file.handle, file.stateid, (0, b"M")).unwrap();
    assert_eq!([world.stored(0), world.stored(1)], [b"Mirrored", b"Mirrored"]);
}

#[test]
fn a_layout_for_reading_does_not_let_write() {
    if !is_root() {
        return;
    }
    let (world, mut client, file) = begin();
    write(&mut client, &file.handle, file.stateid, (0, b"whole")).unwrap();
    let reading = flex_layout(&mut client, &file, Layoutiomode4::Read).unwrap();
    for mirror in &reading.mirrors {
        let port = world.ports[world.server_of(&mut client, mirror.device)];
        assert_eq!(write3(port, mirror.uid, &mirror.handle, b"x"), Err(ACCES));
        assert_eq!(write3(port, mirror.gid, &mirror.handle, b"x"), Err(ACCES));
        assert_eq!(Raw::connect(port, mirror.gid).read(&mirror.handle).unwrap(), b"whole");
        assert_eq!(Raw::connect(port, 1000).read(&mirror.handle), Err(ACCES), "somebody else");
    }
}

#[test]
fn an_evicted_client_is_refused_by_the_data_servers() {
    if !is_root() {
        return;
    }
    let (world, mut client, file) = begin();
    let held = flex_layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    let mirror = &held.mirrors[0];
    let port = world.ports[world.server_of(&mut client, mirror.device)];
    write3(port, mirror.uid, &mirror.handle, b"data").unwrap();
    let id = format!("{:016x}", client.clientid);
    let said = run(common::comity().args(["evict", &id, "--state-dir"]).arg(world.place.state()));
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    wait_until("a fence", || write3(port, mirror.uid, &mirror.handle, b"late") == Err(ACCES));
    let mut other = Four::connect(world.mds.port, 0, "other");
    let its = other.open(&world.place.data().join("f"), BOTH).unwrap();
    let fresh = layout_in_time(&mut other, &its, Layoutiomode4::Rw);
    write_by(&world, &mut other, &its, &fresh, b"more");
    assert_eq!(write3(port, mirror.uid, &mirror.handle, b"late"), Err(ACCES));
    assert_eq!([world.stored(0), world.stored(1)], [b"more", b"more"]);
}

#[test]
fn an_error_that_a_client_reports_takes_the_mirror_out_of_use() {
    if !is_root() {
        return;
    }
    for by_return in [false, true] {
        let (world, mut client, file) = begin();
        let held = flex_layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
        let [first, second] = [held.mirrors[0].device, held.mirrors[1].device];
        let error = |status, operation| io_error(held.stateid, first, status, operation);
        report(&mut client, &file, &error(Nfsstat4::NxIo, op::READ)).unwrap();
        report(&mut client, &file, &error(Nfsstat4::Access, op::WRITE)).unwrap();
        assert_eq!(broken(&world), [0, 0]);
        let failed = error(Nfsstat4::NxIo, op::WRITE);
        if by_return {
            give_back_with(&mut client, &file, held.stateid, vec![failed]).unwrap();
        } else {
            report(&mut client, &file, &failed).unwrap();
            assert!(client.listen(common::PATIENCE, |it| !it.recalled_layouts.is_empty()));
            let recalled = client.recalled_layouts[0];
            give_back_with(&mut client, &file, recalled, Vec::new()).unwrap();
        }
        assert_eq!(broken(&world)[world.server_of(&mut client, first)], 1);
        let left = layout_in_time(&mut client, &file, Layoutiomode4::Rw);
        let devices: Vec<_> = left.mirrors.iter().map(|mirror| mirror.device).collect();
        assert_eq!(devices, [second], "by LAYOUTRETURN: {by_return}");
    }
}

#[test]
fn a_layout_is_returned_with_an_empty_body() {
    if !is_root() {
        return;
    }
    let (_world, mut client, file) = begin();
    let held = flex_layout(&mut client, &file, Layoutiomode4::Read).unwrap();
    let body = give_back_body(&mut client, &file, held.stateid, b"odd");
    assert_eq!(body, Err(Nfsstat4::BadXdr));
    give_back_body(&mut client, &file, held.stateid, b"").unwrap();
}

#[test]
fn reports_of_clients_without_a_layout_are_refused() {
    if !is_root() {
        return;
    }
    let (world, mut client, file) = begin();
    let held = flex_layout(&mut client, &file, Layoutiomode4::Read).unwrap();
    let device = held.mirrors[0].device;
    let error = |stateid| io_error(stateid, device, Nfsstat4::Io, op::WRITE);
    assert_eq!(report(&mut client, &file, &error(file.stateid)), Err(Nfsstat4::BadStateid));
    let unknown = Stateid4 { seqid: 1, other: [7; 12] };
    assert_eq!(report(&mut client, &file, &error(unknown)), Err(Nfsstat4::BadStateid));
    report(&mut client, &file, &error(held.stateid)).unwrap();
    assert_eq!(broken(&world), [0, 0], "a layout for reading tells nothing about writes");
    let stats = |stateid, body: &[u8]| {
        let layoutupdate =
            LayoutContent4 { layout_type: layout_type::FLEX_FILES, body: Opaque(body) };
        let (read, write) = (IoInfo4 { count: 1, bytes: 2 }, IoInfo4::default());
        let (offset, length) = (0, u64::MAX);
        let deviceid = device;
        let args =
            Layoutstats4args { offset, length, stateid, read, write, deviceid, layoutupdate };
        on(&file.handle, operation(op::LAYOUTSTATS, &args))
    };
    let update = encoded(&FfLayoutupdate4 {
        addr: Netaddr4 { netid: Opaque(b"tcp"), addr: Opaque(b"127.0.0.1.8.1") },
        fhandle: Opaque(b"handle"),
        read: FfIoLatency4::default(),
        write: FfIoLatency4::default(),
        duration: Nfstime4::default(),
        local: false,
    });
    assert!(client.perform(stats(held.stateid, &update)).is_ok());
    assert_eq!(client.perform(stats(held.stateid, b"junk")), Err(Nfsstat4::BadXdr));
    assert_eq!(client.perform(stats(file.stateid, &update)), Err(Nfsstat4::BadStateid));
}

#[test]
fn a_lost_mirror_is_shown_and_made_again() {
    if !is_root() {
        return;
    }
    let (mut world, mut client, file) = begin();
    write(&mut client, &file.handle, file.stateid, (0, b"old")).unwrap();
    world.lose(1);
    let mut write_in_time = |data: &[u8]| {
        wait_until("a write", || match write(&mut client, &file.handle, file.stateid, (0, data)) {
            Err(Nfsstat4::Delay) => false,
            done => done.map(|()| true).unwrap(),
        });
    };
    write_in_time(b"new");
    assert_eq!(Raw::connect(world.mds.port, 0).read(&file.handle).unwrap(), b"new");
    assert_eq!(broken(&world), [0, 1]);
    let said = placement(&world.place, &["status"]);
    let line = format!(
        "{}: 1 file without a mirror on b; `comity placement resilver` makes one",
        world.place.data().display()
    );
    assert!(said.out.contains(&line), "{}", said.out);
    let said = placement(&world.place, &["resilver"]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.out.contains("1 file left: see above, and repeat this command"), "{}", said.out);
    world.restart(1);
    wait_until("the plain server", || shown(&world.place)[1]["is_up"] == true);
    assert_eq!(world.stored(1), b"old");
    let check = || -> Value {
        let said = placement(&world.place, &["check", "--json"]);
        serde_json::from_str(&said.out).unwrap()
    };
    assert_eq!(check()["degraded"], 1);
    let said = placement(&world.place, &["resilver", "--json"]);
    assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
    let done: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((&done["files"], &done["bytes"]), (&1.into(), &3.into()));
    assert_eq!([world.stored(0), world.stored(1)], [b"new", b"new"]);
    assert_eq!((broken(&world), &check()["findings"]), (vec![0, 0], &Value::Array(Vec::new())));
}

#[test]
fn a_mirror_that_was_made_elsewhere_leaves_a_data_file_that_a_check_finds() {
    if !is_root() {
        return;
    }
    let mut world = Mirrored::with(3);
    let mut client = Four::connect(world.mds.port, 0, "client");
    let file = client.open(&world.place.data().join("f"), BOTH).unwrap();
    write(&mut client, &file.handle, file.stateid, (0, b"old")).unwrap();
    let folder = |at: usize| world.place.path(["a", "b", "c"][at]);
    let is_used = |at: &usize| std::fs::read_dir(folder(*at)).unwrap().next().is_some();
    let lost = (0..3).find(is_used).unwrap();
    world.lose(lost);
    wait_until("a write", || {
        let done = write(&mut client, &file.handle, file.stateid, (0, b"new"));
        done != Err(Nfsstat4::Delay) && done.map(|()| true).unwrap()
    });
    let said = placement(&world.place, &["resilver"]);
    assert_eq!((said.code, &*said.out), (Some(0), "1 file mirrored again, 3 bytes\n"));
    world.restart(lost);
    wait_until("the plain server", || shown(&world.place)[lost]["is_up"] == true);
    let said = placement(&world.place, &["check", "--json"]);
    let found: Value = serde_json::from_str(&said.out).unwrap();
    let name = ["a", "b", "c"][lost];
    assert_eq!((&found["orphaned"], found["findings"].as_array().unwrap().len()), (&1.into(), 1));
    assert_eq!(found["findings"][0]["server"], name);
    let stored: Vec<_> = (0..3).map(|at| world.stored(at)).collect();
    assert_eq!(stored.iter().filter(|it| *it == b"new").count(), 2);
    assert_eq!(stored[lost], b"old");
}

/// Runs a check of bytes; returns its findings.
fn check_bytes(world: &Mirrored) -> Value {
    let said = placement(&world.place, &["check", "--bytes", "--json"]);
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err))
}

#[test]
fn mirrors_with_other_bytes_are_found_unless_a_client_writes_to_them() {
    if !is_root() {
        return;
    }
    let (world, mut client, file) = begin();
    write(&mut client, &file.handle, file.stateid, (0, &[7; 10_000])).unwrap();
    let found = check_bytes(&world);
    assert_eq!(
        (&found["findings"], &found["compared_bytes"]),
        (&Value::Array(vec![]), &10_000.into())
    );
    let held = flex_layout(&mut client, &file, Layoutiomode4::Rw).unwrap();
    let mirror = &held.mirrors[0];
    let at = world.server_of(&mut client, mirror.device);
    write3(world.ports[at], mirror.uid, &mirror.handle, b"written to one mirror").unwrap();
    let found = check_bytes(&world);
    assert_eq!((&found["unchecked"], &found["differing"]), (&1.into(), &0.into()), "{found}");
    let text = found["findings"][0]["text"].as_str().unwrap();
    assert!(text.contains("clients use the file: repeat this"), "{text}");
    give_back_with(&mut client, &file, held.stateid, Vec::new()).unwrap();
    let mut found = Value::Null;
    wait_until("the end of the layout", || {
        found = check_bytes(&world);
        found["unchecked"] == 0
    });
    let finding = &found["findings"][0];
    assert_eq!((&finding["offset"], &finding["length"]), (&0.into(), &21.into()), "{found}");
    assert_eq!((&finding["kind"], &finding["path"]), (&"differing".into(), &"/f".into()));
    let said = placement(&world.place, &["check", "--bytes"]);
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("f: bytes 0 to 20 are not the same on "), "{}", said.out);
    assert!(said.out.contains("1 file, 1 compared byte by byte (9.7 KiB): 0 lost"), "{}", said.out);
    assert_eq!(placement(&world.place, &["check"]).code, Some(0), "lengths are the same");
}
