//! `comity migrate --cancel`.

use std::thread;
use std::time::{Duration, Instant};

use comity_proto::nfs4::share;

use crate::common::wait_until;
use crate::pair::Pair;

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
