//! A mount that ends gives back what it held at the server.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::time::{Duration, Instant};

use common::world::World;
use common::{Said, comity, run, wait_until};
use rustix::process::{Pid, Signal, kill_process};

fn mounted() -> Option<World> {
    let world = World::exporting("rw,insecure,no_root_squash", &[])?;
    fs::write(world.at_server("file"), "of the server").unwrap();
    world.mount("nodc_enable");
    Some(world)
}

/// The clients of the server, with their delegations.
fn clients(world: &World) -> serde_json::Value {
    let mut command = comity();
    command.args(["clients", "--json", "--state-dir"]).arg(world.place.state());
    serde_json::from_str(&run(&mut command).out).unwrap()
}

#[test]
fn an_unmounted_client_is_unknown_to_the_server_and_holds_nothing() {
    let Some(world) = mounted() else { return };
    fs::write(world.dir.join("file"), "of the client").unwrap();
    let before = clients(&world);
    assert!(before[0]["delegations"].as_u64().unwrap() > 0, "{before}");
    world.umount();
    assert_eq!(clients(&world), serde_json::json!([]));
    let begun = Instant::now();
    fs::write(world.at_server("file"), "of a program there").unwrap();
    // A delegation would have to be recalled first, from a client that does not answer.
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn a_mount_of_a_server_that_does_not_answer_ends_within_its_bound() {
    let Some(world) = mounted() else { return };
    assert_eq!(fs::read_to_string(world.dir.join("file")).unwrap(), "of the server");
    world.server().signal(Signal::STOP);
    let begun = Instant::now();
    let said = run(world.comity("umount").arg(&world.dir));
    world.server().signal(Signal::CONT);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// Has a command about the mount run while the server is stopped, and returns what it said. It must
/// end within a time.
fn while_the_server_is_stopped(world: &World, command: &mut Command, seconds: u64) -> Said {
    world.server().signal(Signal::STOP);
    let begun = Instant::now();
    let said = run(command);
    let took = begun.elapsed();
    world.server().signal(Signal::CONT);
    assert!(took < Duration::from_secs(seconds), "{took:?}: {}", said.err);
    said
}

#[test]
fn an_unmount_gives_up_a_server_that_takes_no_data() {
    let Some(world) = World::exporting("rw,insecure,no_root_squash", &[]) else { return };
    fs::write(world.at_server("file"), "of the server").unwrap();
    world.mount(&world.cached(",dc_write=journal"));
    let file = fs::File::options().write(true).open(world.dir.join("file")).unwrap();
    world.server().signal(Signal::STOP);
    file.write_all_at(b"of the client", 0).unwrap();
    drop(file);
    let said = while_the_server_is_stopped(&world, world.comity("umount").arg(&world.dir), 50);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("unmounted, but its server has taken nothing"), "{}", said.err);
    assert!(said.err.contains("13 bytes are not sent"), "{}", said.err);
    let sent = || fs::read_to_string(world.at_server("file")).unwrap() == "of the client";
    wait_until("its program sends the data all the same", sent);
}

#[test]
fn an_unmount_gives_up_a_program_of_the_mount_that_is_stopped() {
    let Some(world) = mounted() else { return };
    let mut status = comity();
    status.args(["cache", "status", "--json", "--state-dir"]).arg(world.place.path("mounts"));
    let told = run(&mut status);
    let told: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    let process = Pid::from_raw(told[0]["process"].as_i64().unwrap() as i32).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    let begun = Instant::now();
    let said = run(world.comity("umount").arg(&world.dir));
    kill_process(process, Signal::CONT).unwrap();
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("unmounted, but perhaps not all data is sent"), "{}", said.err);
    assert!(said.err.contains("did not answer within 5 s"), "{}", said.err);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn commands_give_up_an_object_whose_server_does_not_answer() {
    let Some(world) = mounted() else { return };
    let file = world.dir.join("file");
    let key = world.place.path("key.pem");
    assert_eq!(run(comity().args(["key", "new"]).arg(&key)).code, Some(0));
    let id = while_the_server_is_stopped(&world, comity().arg("id").arg(&file), 15);
    let mut grant = comity();
    grant.arg("grant").arg(&file).args(["--rights", "r", "--to"]).arg(&key).arg("--key").arg(&key);
    let grant = while_the_server_is_stopped(&world, &mut grant, 15);
    for said in [id, grant] {
        assert_eq!((said.code, said.out.as_str()), (Some(1), ""), "{}", said.err);
        assert!(said.err.contains("its file system did not answer within 5 s"), "{}", said.err);
        assert!(said.err.contains("or run this on the server"), "{}", said.err);
    }
}
