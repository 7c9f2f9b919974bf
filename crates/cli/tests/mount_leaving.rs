//! A mount that ends gives back what it held at the server.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod common;

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use common::{Place, Running, Said, can_mount, comity, run};
use rustix::process::Signal;

/// A server with one export, and a mount of it.
struct World {
    place: Place,
    server: Running,
    dir: PathBuf,
}

impl World {
    fn new() -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let place = Place::new();
        let export = format!("{} 127.0.0.1(rw,insecure,no_root_squash)\n", place.data().display());
        place.write("exports", &export);
        let mut command = comity();
        command.args(["serve", "--json", "--listen", "127.0.0.1", "--no-register", "--port", "0"]);
        command.arg("--state-dir").arg(place.state()).arg("--exports").arg(place.path("exports"));
        let server = Running::start(&mut command);
        let dir = place.path("mounted");
        fs::create_dir_all(&dir).unwrap();
        Some(Self { place, server, dir })
    }

    fn mount(&self) {
        let source = format!("nfs://127.0.0.1:{}{}", self.server.port, self.place.data().display());
        let mut command = comity();
        command.arg("mount").arg("--state-dir").arg(self.place.path("mounts"));
        let said = run(command.args(["-o", "nodc_enable", &source]).arg(&self.dir));
        assert_eq!(said.code, Some(0), "{}", said.err);
    }

    /// Unmounts; returns the output, and the time that it took.
    fn unmount(&self) -> (Said, Duration) {
        let begun = Instant::now();
        let mut command = comity();
        command.arg("umount").arg("--state-dir").arg(self.place.path("mounts")).arg(&self.dir);
        (run(&mut command), begun.elapsed())
    }

    /// The clients of the server, with their delegations.
    fn clients(&self) -> serde_json::Value {
        let mut command = comity();
        command.args(["clients", "--json", "--state-dir"]).arg(self.place.state());
        serde_json::from_str(&run(&mut command).out).unwrap()
    }
}

#[test]
fn an_unmounted_client_is_unknown_to_the_server_and_holds_nothing() {
    let Some(world) = World::new() else { return };
    let file = world.place.data().join("file");
    fs::write(&file, "of the server").unwrap();
    world.mount();
    fs::write(world.dir.join("file"), "of the client").unwrap();
    let before = world.clients();
    assert!(before[0]["delegations"].as_u64().unwrap() > 0, "{before}");
    let (said, _) = world.unmount();
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert_eq!(world.clients(), serde_json::json!([]));
    let begun = Instant::now();
    fs::write(&file, "of a program there").unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
}

#[test]
fn a_mount_of_a_server_that_does_not_answer_ends_within_its_bound() {
    let Some(world) = World::new() else { return };
    fs::write(world.place.data().join("file"), "text").unwrap();
    world.mount();
    assert_eq!(fs::read_to_string(world.dir.join("file")).unwrap(), "text");
    world.server.signal(Signal::STOP);
    let (said, taken) = world.unmount();
    world.server.signal(Signal::CONT);
    assert_eq!(said.code, Some(0), "{}", said.err);
    assert!(taken < Duration::from_secs(10), "{taken:?}");
}
