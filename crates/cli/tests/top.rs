//! The load of a server: `comity top`, and the load on the metrics page.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::time::{Duration, Instant};

use common::raw::Raw;
use common::{Place, Running, comity, metrics, run, wait_until};
use serde_json::Value;

fn top(place: &Place, words: &[&str]) -> String {
    let said = run(comity().arg("top").args(words).arg("--state-dir").arg(place.state()));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    said.out
}

fn load(place: &Place) -> Value {
    serde_json::from_str(&top(place, &["--once", "--json"])).unwrap()
}

fn found<'a>(rows: &'a Value, name: &str, value: &str) -> Option<&'a Value> {
    rows.as_array().unwrap().iter().find(|row| row[name] == value)
}

#[test]
fn the_busiest_client_and_its_operation_are_listed_first() {
    let place = Place::new();
    let server = Running::start(place.serve_data().args(["--metrics", "127.0.0.1:0"]));
    let mut idle = Raw::connect(server.port, 0);
    idle.mount(&place.data()).unwrap();
    let mut busy = Raw::connect_from([127, 0, 0, 2], server.port, 0);
    let root = busy.mount(&place.data()).unwrap();
    let begun = Instant::now();
    let mut calls = 0_u64;
    let mut seen = Value::Null;
    wait_until("two samples hold the calls", || {
        (0..200).for_each(|_| busy.getattr(&root).unwrap());
        calls += 200;
        seen = load(&place);
        seen["clients"][0]["now"]["calls_per_second"].as_f64().unwrap_or(0.0) > 0.0
    });
    assert_eq!(seen["clients"][0]["client"], "127.0.0.2", "{seen}");
    assert_eq!(seen["clients_count"], 2);
    assert_eq!(seen["clients"][0]["connections"], 1);
    // The rate must not be higher than the number of all calls.
    let rate = seen["clients"][0]["now"]["calls_per_second"].as_f64().unwrap();
    assert!(rate <= (calls + 1) as f64 && begun.elapsed() > Duration::from_secs(1), "{rate}");
    let getattr = found(&seen["operations"], "operation", "GETATTR").unwrap();
    assert!(getattr["minute"].as_f64().unwrap() > 0.0, "{getattr}");
    let service = |rates: &Value| rates["service_seconds_per_second"].as_f64().unwrap();
    let of_client = service(&seen["clients"][0]["minute"]);
    assert!(of_client > 0.0 && of_client < 1.0, "{seen}");
    let of_idle = service(&seen["clients"][1]["minute"]);
    assert!(of_idle < of_client / 10.0, "{seen}");
    let path = place.data().display().to_string();
    let export = found(&seen["exports"], "export", &path).unwrap();
    assert!(service(export) > 10.0 * of_idle, "{seen}");
}

#[test]
fn each_resource_is_a_ratio_and_is_on_the_metrics_page_too() {
    let place = Place::new();
    let server = Running::start(place.serve_data().args(["--metrics", "127.0.0.1:0"]));
    let seen = load(&place);
    for row in seen["resources"].as_array().unwrap() {
        for average in ["now", "second", "minute", "five_minutes"] {
            let ratio = row[average].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&ratio), "{row}");
        }
    }
    let threads = found(&seen["resources"], "resource", "threads").unwrap();
    assert!(threads["minute"].as_f64().unwrap() > 0.0, "{threads}");
    assert!(found(&seen["resources"], "resource", "processor").is_some(), "{seen}");
    let page = metrics(&server);
    let sample = "comity_load_ratio{resource=\"threads\",device=\"\",over=\"1m\"} 0.";
    assert!(page.contains(sample), "{page}");
}

#[test]
fn one_print_has_all_tables_and_no_control_characters() {
    let place = Place::new();
    let _server = Running::start(&mut place.serve_data());
    let text = top(&place, &["--once"]);
    let titles = ["RESOURCE", "Operations", "Clients", "Exports", "Events", "Waits"];
    assert!(titles.iter().all(|title| text.contains(title)), "{text}");
    assert!(!text.chars().any(|letter| letter.is_control() && letter != '\n'), "{text:?}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("serve with --metrics for"), "{text}");
}

#[test]
fn a_live_screen_needs_a_terminal() {
    let place = Place::new();
    let _server = Running::start(&mut place.serve_data());
    let said = run(comity().arg("top").arg("--state-dir").arg(place.state()));
    assert_eq!((said.code, said.out.as_str()), (Some(1), ""));
    assert!(said.err.contains("no terminal; use --once"), "{}", said.err);
}
