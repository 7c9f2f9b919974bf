//! A mount that ends gives back what it held at the server.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::time::{Duration, Instant};

use common::world::World;
use common::{comity, run};
use rustix::process::Signal;

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
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
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
