use std::time::Duration;

use comity_vfs::{DelegationKind, OpenAccess, RangeLock};
use proptest::prelude::*;

use crate::machine::CallFailure;
use crate::session::sim::*;
use crate::session::{SessionAnswer, SessionOutcome, SessionRequest};

/// Two clients, of which the first has an open file with a lock, a delegated file that it has
/// closed, one that it opened under its delegation, and a delegated directory.
fn holding() -> (World, crate::server_handle::ServerHandle) {
    let mut world = World::new(2, ServerSettings { delegations: true, ..Default::default() });
    let top = top(&mut world);
    let [locked, closed, here] = ["locked", "closed", "here"].map(|it| file(&mut world, &top, it));
    world.pass(Duration::from_secs(10));
    let open_both =
        |world: &mut World, file| opened(world.perform(0, open(0, file, OpenAccess::Both)));
    let of_lock = open_both(&mut world, &locked);
    world.perform(0, lock(&of_lock, 7, RangeLock::Exclusive, false)).unwrap();
    for file in [&closed, &here] {
        let open = open_both(&mut world, file);
        assert_eq!(open.delegation, Some(DelegationKind::Write));
        world.perform(0, SessionRequest::Close(open.open)).unwrap();
    }
    assert!(granted(world.perform(0, delegate(&top))).is_some());
    world.pass(Duration::from_secs(5));
    assert!(open_both(&mut world, &here).reply.is_none(), "it is opened under the delegation");
    (world, locked)
}

/// Lets the first client leave; returns the outcome, and the time that it took.
fn leave(world: &mut World) -> (SessionOutcome, Duration) {
    let begun = world.now;
    let outcome = world.perform(0, SessionRequest::Leave);
    (outcome, world.now - begun)
}

#[test]
fn a_client_that_leaves_gives_back_all_that_it_holds() {
    let (mut world, locked) = holding();
    let before = world.server.engine().census();
    assert_eq!((before.clients, before.locks, before.directories), (2, 1, 1));
    let (outcome, taken) = leave(&mut world);
    assert!(matches!(outcome, Ok(SessionAnswer::Done)), "{outcome:?}");
    assert!(taken < Duration::from_millis(100), "{taken:?}");
    let left = world.server.engine().census();
    assert_eq!((left.clients, left.sessions), (1, 1));
    assert_eq!((left.opens, left.locks, left.delegations), (0, 0, 0));
    let begun = world.now;
    opened(world.perform(1, open(0, &locked, OpenAccess::Both)));
    assert!(world.now - begun < Duration::from_millis(10), "nothing has to be recalled");
    let late = world.perform(0, read(0, &locked));
    assert!(matches!(late, Err(CallFailure::Ended)), "{late:?}");
}

#[test]
fn a_client_leaves_a_silent_server_after_three_seconds() {
    let (mut world, locked) = holding();
    world.deaf = true;
    let waiting = world.submit(0, read(0, &locked));
    let (outcome, taken) = leave(&mut world);
    assert!(matches!(outcome, Err(CallFailure::TimedOut)), "{outcome:?}");
    assert!(taken <= Duration::from_secs(3), "{taken:?}");
    let late = world.outcome(0, waiting);
    assert!(matches!(late, Err(CallFailure::Ended)), "its other callers get an answer: {late:?}");
}

#[test]
fn a_client_leaves_at_once_while_it_recovers() {
    let (mut world, _) = holding();
    world.restart_server();
    world.pass(Duration::from_millis(6));
    assert!(world.server.engine().is_in_grace() && world.clients[0].ready == 1);
    let (outcome, taken) = leave(&mut world);
    assert!(matches!(outcome, Err(CallFailure::Ended)), "{outcome:?}");
    assert_eq!(taken, Duration::ZERO);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_client_leaves_nothing_behind_though_connections_end(seed in any::<u64>()) {
        leaves_nothing(seed);
    }
}

/// Lets a client leave over a network whose connections end. Returns false if so many ended that
/// it had no answer for three seconds.
fn leaves_nothing(seed: u64) -> bool {
    let (mut world, _) = holding();
    world.seed(seed);
    world.faults = Faults { cut_before: 50, cut_behind: 50, doubled: 50 };
    let (outcome, taken) = leave(&mut world);
    assert!(taken <= Duration::from_secs(15), "{taken:?}");
    if matches!(outcome, Err(CallFailure::TimedOut)) {
        return false;
    }
    assert!(matches!(outcome, Ok(SessionAnswer::Done)), "{outcome:?}");
    let left = world.server.engine().census();
    assert_eq!((left.clients, left.opens, left.delegations), (1, 0, 0));
    true
}

/// With this seed a connection ends while DESTROY_SESSION is under way, and the next one is not
/// bound to the session yet.
#[test]
fn a_session_is_destroyed_over_another_connection() {
    assert!(leaves_nothing(2_434_134_180_457_654_442));
}
