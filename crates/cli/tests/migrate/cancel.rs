//! `comity migrate --cancel`.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use comity_proto::nfs4::share;
use serde_json::json;

use crate::common::wait_until;
use crate::pair::{Pair, state};

/// The server waits for so long for state that cannot move at present.
const PATIENCE: Duration = Duration::from_secs(20);

#[test]
fn a_move_that_waits_is_cancelled_and_the_export_stays() {
    let mut pair = Pair::new();
    let mut client = pair.client(0);
    client.open(&pair.file("f"), share::READ | share::WRITE).unwrap();
    // In its grace period the server does not know all state, so that none can move.
    pair.restart(0);
    let begun = Instant::now();
    thread::scope(|scope| {
        let moving = scope.spawn(|| pair.migrate(0, &[]));
        wait_until("a move is under way", || {
            let said = pair.ask(0, &["migrate", "--cancel"]);
            let is_cancelled = said.code == Some(0);
            assert!(is_cancelled || said.err.contains("no migration is under way"), "{}", said.err);
            is_cancelled
        });
        let said = moving.join().unwrap();
        assert_eq!(said.code, Some(1), "{}", said.out);
        assert!(said.err.contains("cancelled: the exports stay here"), "{}", said.err);
    });
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert_eq!(pair.moved(0), None);
    assert_eq!(pair.ask(0, &["migrate", "--cancel"]).code, Some(1), "it has ended");
}

/// A command that has asked for a move may end before it learns the outcome.
#[test]
fn a_move_that_has_ended_is_not_cancelled() {
    let mut pair = Pair::with_lease(Duration::from_secs(2));
    pair.client(0).open(&pair.file("f"), share::READ | share::WRITE).unwrap();
    // The move waits for the end of the grace period, so that the first answer is not the outcome.
    pair.restart(0);
    let request = json!({
        "command": "migrate", "exports": [pair.place.data()], "to": "b", "forward_seconds": null,
        "dry_run": false, "run": 7,
    });
    let socket = comity_daemon::control_socket(&state(&pair.place, "a")).unwrap();
    let mut command = UnixStream::connect(socket).unwrap();
    command.write_all(format!("{request}\n").as_bytes()).unwrap();
    command.read_exact(&mut [0]).unwrap();
    drop(command);
    wait_until("the export has moved", || {
        pair.moved(0).is_some_and(|place| place["state"] == "away")
    });
    let said = pair.ask(0, &["migrate", "--cancel"]);
    assert_eq!(said.code, Some(1), "{}", said.out);
    assert!(said.err.contains("no migration is under way"), "{}", said.err);
}
