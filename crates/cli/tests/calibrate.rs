//! The rates of disks and lines are measured or stated once, and used by the server.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::fs;

use common::{Place, Running, Said, comity, metrics, run, wait_until};
use serde_json::Value;

fn calibrate(place: &Place, words: &[&str]) -> Said {
    let mut command = comity();
    run(command.args(["load", "calibrate"]).args(words).arg("--state-dir").arg(place.state()))
}

/// Makes the state folder as a server does.
fn with_state_folder() -> Place {
    let place = Place::new();
    assert!(Running::start(&mut place.serve_data()).stop().success());
    place
}

fn has_load(server: &Running, resource: &str, device: &str) -> bool {
    metrics(server)
        .contains(&format!("{{resource=\"{resource}\",device=\"{device}\",over=\"1s\"}}"))
}

#[test]
fn a_line_of_which_the_kernel_knows_no_speed_has_a_load_once_it_is_stated() {
    let place = with_state_folder();
    let started = || Running::start(place.serve_data().args(["--metrics", "127.0.0.1:0"]));
    let server = started();
    wait_until("the second sample", || has_load(&server, "threads", ""));
    assert!(!has_load(&server, "network_send", "lo"));
    assert!(server.stop().success());

    let said = calibrate(&place, &["--line", "lo=1e9"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(said.out.starts_with("line lo: 125 MB/s in each direction\n"), "{}", said.out);
    let server = started();
    wait_until("the load of the line", || has_load(&server, "network_send", "lo"));
    assert!(server.stop().success());
}

#[test]
fn a_disk_whose_rates_were_measured_has_a_load_by_them() {
    let place = with_state_folder();
    let data = place.data();
    let said = calibrate(&place, &[data.to_str().unwrap(), "--seconds", "1", "--json"]);
    if said.err.contains("takes no direct access") || said.err.contains("is on no disk") {
        println!("skipped: {}", said.err.trim());
        return;
    }
    assert_eq!(said.code, Some(0), "{}", said.err);
    let rates: Value = serde_json::from_str(&said.out).unwrap();
    let (disk, measured) = rates["disks"].as_object().unwrap().iter().next().unwrap();
    for rate in ["read_bytes", "written_bytes", "operations"] {
        assert!(measured[rate].as_u64().unwrap() > 0, "{rates}");
    }
    assert_eq!(fs::read_dir(&data).unwrap().count(), 0, "the file of the measurement is left");
    let server = Running::start(place.serve_data().args(["--metrics", "127.0.0.1:0"]));
    wait_until("the load of the disk", || has_load(&server, "disk_rate", disk));
    assert!(server.stop().success());
}

#[test]
fn a_device_that_cannot_be_measured_changes_nothing() {
    let place = with_state_folder();
    let kept = || fs::read(place.state().join("device-rates.json")).ok();
    for (words, code, names) in [
        (&["--line", "nowhere0=1e9"][..], 1, "no such network interface"),
        (&["--line", "lo=fast"], 2, "--line"),
        (&["--line", "lo"], 2, "INTERFACE=BITS"),
        (&["/nowhere"], 1, "/nowhere"),
        (&["/proc", "--line", "lo=1e9"], 1, "on no disk"),
        (&[], 2, "DIR"),
    ] {
        let said = calibrate(&place, words);
        assert_eq!((said.code, said.out.as_str()), (Some(code), ""), "{words:?}");
        assert!(said.err.contains(names), "{words:?}: {}", said.err);
        assert_eq!(kept(), None, "{words:?}");
    }
    let said =
        run(comity().args(["load", "calibrate", "--line", "lo=1e9", "--state-dir", "/nowhere"]));
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains("no state folder /nowhere"), "{}", said.err);
}
