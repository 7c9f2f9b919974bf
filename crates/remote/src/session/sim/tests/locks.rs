use std::time::Duration;

use comity_vfs::{LockOutcome, OpenAccess, RangeLock};

use crate::session::sim::*;
use crate::session::{SessionAnswer, SessionOutcome, SessionRequest};

fn is(outcome: &SessionOutcome, wanted: LockOutcome) -> bool {
    matches!(outcome, Ok(SessionAnswer::Lock(found)) if *found == wanted)
}

#[test]
fn a_blocked_lock_is_granted_as_soon_as_it_is_free() {
    let mut world = World::new(2, ServerSettings::default());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    let one = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    let other = opened(world.perform(1, open(0, &file, OpenAccess::Both)));
    world.perform(0, lock(&one, 7, RangeLock::Exclusive, false)).unwrap();
    let id = world.submit(1, lock(&other, 8, RangeLock::Exclusive, true));
    world.pass(Duration::from_secs(3));
    assert!(!world.clients[1].done.contains_key(&id));
    world.perform(0, lock(&one, 7, RangeLock::Free, false)).unwrap();
    let freed = world.now;
    assert!(is(&world.outcome(1, id), LockOutcome::Done));
    let waited = world.now - freed;
    assert!(waited < Duration::from_millis(100), "CB_NOTIFY_LOCK ends the wait: {waited:?}");
}

#[test]
fn a_caller_that_stops_waiting_leaves_nothing_locked() {
    let mut world = World::new(2, ServerSettings::default());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    let one = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    let other = opened(world.perform(1, open(0, &file, OpenAccess::Both)));
    world.perform(0, lock(&one, 7, RangeLock::Exclusive, false)).unwrap();
    let id = world.submit(1, lock(&other, 8, RangeLock::Exclusive, true));
    world.pass(Duration::from_secs(3));
    world.forsake(1, id);
    world.perform(0, lock(&one, 7, RangeLock::Free, false)).unwrap();
    world.pass(Duration::from_secs(60));
    assert_eq!(world.server.engine().census().locks, 0);
}

#[test]
fn a_lock_granted_after_its_caller_gave_up_is_unlocked() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    let open = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    let id = world.submit(0, lock(&open, 7, RangeLock::Exclusive, false));
    world.forsake(0, id);
    world.pass(Duration::from_secs(5));
    assert_eq!(world.server.engine().census().locks, 0);
}

#[test]
fn a_closed_file_has_no_locks_of_that_open() {
    let mut world = World::new(2, ServerSettings::default());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    let one = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    let same = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    let other = opened(world.perform(1, open(0, &file, OpenAccess::Both)));
    world.perform(0, lock(&one, 7, RangeLock::Exclusive, false)).unwrap();
    let denied = world.perform(1, lock(&other, 9, RangeLock::Shared, false));
    assert!(is(&denied, LockOutcome::Denied), "{denied:?}");
    world.perform(0, SessionRequest::Close(one.open)).unwrap();
    world.pass(Duration::from_secs(1));
    let had = world.perform(1, lock(&other, 9, RangeLock::Shared, false));
    assert!(is(&had, LockOutcome::Done), "{had:?}");
    world.perform(0, SessionRequest::Close(same.open)).unwrap();
    world.pass(Duration::from_secs(5));
    assert_eq!(world.server.engine().census().opens, 1);
}

#[test]
fn a_conflicting_lock_is_reported() {
    let mut world = World::new(2, ServerSettings::default());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    let one = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    let other = opened(world.perform(1, open(0, &file, OpenAccess::Both)));
    world.perform(0, lock(&one, 7, RangeLock::Shared, false)).unwrap();
    let find = |lock: SessionRequest| match lock {
        SessionRequest::Lock(wanted) => SessionRequest::FindLock(wanted),
        request => request,
    };
    let found = world.perform(1, find(lock(&other, 7, RangeLock::Exclusive, false)));
    let Ok(SessionAnswer::HeldLock(Some(held))) = found else { panic!("{found:?}") };
    assert_eq!((held.bytes, held.is_exclusive), ((10, 19), false));
    let found = world.perform(1, find(lock(&other, 7, RangeLock::Shared, false)));
    assert!(matches!(found, Ok(SessionAnswer::HeldLock(None))), "{found:?}");
}
