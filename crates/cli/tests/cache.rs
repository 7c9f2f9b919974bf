//! `comity cache` and the end of a mount, with the programs that users run.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::world::World;
use common::{Said, comity, metrics_at, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};

fn world() -> Option<World> {
    World::exporting("rw,insecure,no_root_squash", &[])
}

fn mount(world: &World, options: &str) {
    world.mount(&world.cached(&format!(",{options}")));
}

/// Runs a command about the mounts of this test.
fn comity_of(world: &World, command: &[&str], arguments: &[&str]) -> Said {
    let folder = world.place.path("mounts");
    run(comity().args(command).arg("--state-dir").arg(folder).args(arguments))
}

/// The path of a file in the mount.
fn shown(world: &World, name: &str) -> String {
    world.dir.join(name).display().to_string()
}

/// The status of the only mount.
fn status(world: &World) -> serde_json::Value {
    let said = comity_of(world, &["cache", "status", "--json"], &[]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let all: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(all.as_array().unwrap().len(), 1, "{all}");
    all[0].clone()
}

fn process(world: &World) -> Pid {
    Pid::from_raw(status(world)["process"].as_i64().unwrap() as i32).unwrap()
}

/// Returns the error of a command that failed.
fn failed(said: &Said) -> &str {
    assert_eq!(said.code, Some(1), "{}{}", said.out, said.err);
    &said.err
}

fn succeeded(said: &Said) -> &str {
    assert_eq!(said.code, Some(0), "{}", said.err);
    &said.out
}

#[test]
fn files_are_filled_shown_and_dropped() {
    let Some(world) = world() else { return };
    fs::create_dir(world.place.data().join("dir")).unwrap();
    for name in ["dir/one", "dir/two", "other"] {
        fs::write(world.place.data().join(name), vec![7; 3_000_000]).unwrap();
    }
    mount(&world, "");
    let before = status(&world);
    assert_eq!(before["mount"], shown(&world, "").trim_end_matches('/'));
    assert_eq!(before["cache"]["hit_bytes"], 0);
    let said = comity_of(&world, &["cache", "fill"], &[&shown(&world, "dir")]);
    assert_eq!(succeeded(&said), "2 files, 5.7 MiB: cached as a whole\n");
    assert_eq!(fs::read(world.dir.join("dir/one")).unwrap().len(), 3_000_000);
    let after = status(&world);
    assert!(after["cache"]["hit_bytes"].as_u64() >= Some(3_000_000), "{after}");
    let missed = after["cache"]["miss_bytes"].as_u64();
    assert_eq!(missed, Some(6_000_000), "nothing was fetched for the program");
    let said = comity_of(&world, &["cache", "status"], &[&shown(&world, "dir")]);
    assert!(succeeded(&said).contains("still to send      nothing"), "{}", said.out);
    let said = comity_of(&world, &["cache", "drop", "--json"], &[&shown(&world, "dir/two")]);
    let freed: serde_json::Value = serde_json::from_str(succeeded(&said)).unwrap();
    assert!(freed["files"] == 1 && freed["bytes"].as_u64() > Some(2_900_000), "{freed}");
    let said = comity_of(&world, &["cache", "fill"], &[&shown(&world, "dir")]);
    succeeded(&said);
    assert_eq!(status(&world)["cache"]["miss_bytes"], 9_000_000, "the dropped one alone");
}

#[test]
fn files_whose_names_are_not_text_are_filled_pinned_and_dropped() {
    let Some(world) = world() else { return };
    let name = OsStr::from_bytes(b"dir/no \xff text");
    fs::create_dir(world.place.data().join("dir")).unwrap();
    fs::write(world.place.data().join(name), vec![7; 100_000]).unwrap();
    mount(&world, "");
    for verb in ["fill", "pin", "drop"] {
        let said = comity_of(&world, &["cache", verb], &[&shown(&world, "dir")]);
        assert!(succeeded(&said).starts_with("1 file,"), "{verb}: {}", said.out);
    }
}

#[test]
fn the_status_is_shown_again_each_second() {
    let Some(world) = world() else { return };
    mount(&world, "");
    let mut watching = comity()
        .args(["cache", "status", "--watch", "--json", "--state-dir"])
        .arg(world.place.path("mounts"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = vec![0; 2_000];
    let mut output = watching.stdout.take().unwrap();
    let mut seen = 0;
    while lines[..seen].iter().filter(|byte| **byte == b'\n').count() < 2 {
        seen += output.read(&mut lines[seen..]).unwrap();
    }
    watching.kill().unwrap();
    watching.wait().unwrap();
}

#[test]
fn pinned_files_outlive_the_cleaner_and_damage_is_found() {
    let Some(world) = world() else { return };
    fs::write(world.place.data().join("file"), vec![7; 100_000]).unwrap();
    mount(&world, "");
    let said = comity_of(&world, &["cache", "pin"], &[&shown(&world, "file")]);
    assert_eq!(succeeded(&said), "1 file, 97.6 KiB: pinned\n");
    let said = comity_of(&world, &["cache", "verify"], &[&shown(&world, "")]);
    assert_eq!(succeeded(&said), "1 file, 25 pages: all are whole\n");
    let data = data_file(&world.place.path("cache")).unwrap();
    let mut bytes = fs::read(&data).unwrap();
    bytes[50_000] ^= 1;
    fs::write(&data, bytes).unwrap();
    let said = comity_of(&world, &["cache", "verify"], &[&shown(&world, "")]);
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("dropped 1 damaged page,"), "{}", said.out);
    let said = comity_of(&world, &["cache", "verify"], &[&shown(&world, "")]);
    assert!(succeeded(&said).contains("24 pages"), "{}", said.out);
}

/// The file in a cache folder with the pages of the only cached file.
fn data_file(folder: &Path) -> Option<PathBuf> {
    fs::read_dir(folder).unwrap().flatten().find_map(|entry| match entry.path() {
        path if path.is_dir() => data_file(&path),
        path => path.extension().is_some_and(|ending| ending == "data").then_some(path),
    })
}

#[test]
fn prometheus_gets_the_numbers_of_the_cache() {
    let Some(world) = world() else { return };
    fs::write(world.place.data().join("file"), vec![7; 100_000]).unwrap();
    mount(&world, "metrics=127.0.0.1:0");
    fs::read(world.dir.join("file")).unwrap();
    let page = metrics_at(status(&world)["metrics"].as_str().unwrap());
    assert!(page.contains("\ncomity_cache_miss_bytes_total 100000\n"), "{page}");
    assert!(page.contains("\ncomity_cache_disk_usable 1\n"), "{page}");
}

#[test]
fn errors_say_what_to_do() {
    let Some(world) = world() else { return };
    let status = || comity_of(&world, &["cache", "status"], &[&shown(&world, "")]);
    assert!(failed(&status()).contains("no mount of comity is there"));
    let said = comity_of(&world, &["cache", "status"], &[]);
    assert_eq!(succeeded(&said), "no mounts\n");
    fs::write(world.place.data().join("file"), "data").unwrap();
    let (options, source) = ("nodc_enable,metrics=127.0.0.1:0", world.place.data());
    let arguments = ["-o", options, source.to_str().unwrap(), &shown(&world, "")];
    let said = comity_of(&world, &["mount"], &arguments);
    assert!(failed(&said).contains("add -o dc_enable"), "{}", said.err);
    mount(&world, "nodc_enable");
    assert!(succeeded(&status()).contains("mount it with -o dc_enable"));
    for command in ["fill", "drop", "verify"] {
        let said = comity_of(&world, &["cache", command], &[&shown(&world, "file")]);
        assert!(failed(&said).contains("-o dc_enable"), "{}", said.err);
    }
    let process = process(&world);
    kill_process(process, Signal::STOP).unwrap();
    // A look at a file of the mount would wait for the stopped program, for ever.
    let commands = ["status", "fill", "pin", "drop", "verify"];
    let said: Vec<Said> = std::thread::scope(|scope| {
        let start = |command: &'static str| {
            let world = &world;
            let ask = move || comity_of(world, &["cache", command], &[&shown(world, "in/file")]);
            scope.spawn(ask)
        };
        let all: Vec<_> = commands.into_iter().map(start).collect();
        all.into_iter().map(|ended| ended.join().unwrap()).collect()
    });
    kill_process(process, Signal::CONT).unwrap();
    for said in said {
        assert!(failed(&said).contains("did not answer within 5 s"), "{}", said.err);
    }
    kill_process(process, Signal::KILL).unwrap();
    wait_until("it has ended", || status().err.contains("has ended"));
    assert!(failed(&status()).contains("comity umount"));
    let said = comity_of(&world, &["cache", "fill"], &[&shown(&world, "file")]);
    assert!(failed(&said).contains("comity umount"), "{}", said.err);
    succeeded(&comity_of(&world, &["umount"], &[&shown(&world, "")]));
    assert!(failed(&status()).contains("no mount of comity is there"));
}

#[test]
fn an_unmount_returns_once_the_program_has_sent_its_data_and_ended() {
    let Some(world) = world() else { return };
    mount(&world, "dc_write=journal");
    let process = process(&world);
    let data: Vec<u8> = (0..8_000_000).map(|at| (at % 251) as u8).collect();
    fs::write(world.dir.join("file"), &data).unwrap();
    wait_until("it is not used", || {
        comity_of(&world, &["umount"], &[&shown(&world, "")]).code == Some(0)
    });
    assert!(fs::read(world.place.data().join("file")).unwrap() == data);
    wait_until("it has ended", || !is_running(process));
    assert_eq!(fs::read_dir(world.place.path("mounts/mounts")).unwrap().count(), 0);
}

fn is_running(process: Pid) -> bool {
    let status = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    !status.is_empty() && !status.contains(") Z ")
}

#[test]
fn an_unmount_says_that_data_could_not_be_sent() {
    let Some(mut world) = world() else { return };
    mount(&world, "dc_write=journal,soft,timeo=2,retrans=1");
    fs::write(world.dir.join("file"), "old").unwrap();
    let file = fs::OpenOptions::new().write(true).open(world.dir.join("file")).unwrap();
    world.kill_server();
    std::os::unix::fs::FileExt::write_all_at(&file, b"new", 0).unwrap();
    drop(file);
    let mut said = comity_of(&world, &["umount"], &[&shown(&world, "")]);
    while said.err.contains("in use") {
        said = comity_of(&world, &["umount"], &[&shown(&world, "")]);
    }
    assert!(failed(&said).contains("could not be sent"), "{}", said.err);
    assert!(said.err.contains("dc_write=journal"), "{}", said.err);
}
