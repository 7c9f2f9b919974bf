use std::time::Duration;

use comity_vfs::{DelegationKind, LockOutcome, OpenAccess, RangeLock};

use crate::machine::{CallFailure, Notice};
use crate::session::sim::world::settings;
use crate::session::sim::*;
use crate::session::{SessionAnswer, SessionRequest};

const LEASE: Duration = Duration::from_secs(30);

#[test]
fn opens_and_locks_are_reclaimed_after_the_server_has_restarted() {
    let mut world = World::new(2, ServerSettings::default());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    let one = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    let other = opened(world.perform(1, open(0, &file, OpenAccess::Both)));
    let locked = world.perform(0, lock(&one, 7, RangeLock::Exclusive, false));
    assert!(matches!(locked, Ok(SessionAnswer::Lock(LockOutcome::Done))), "{locked:?}");
    world.restart_server();
    // The other client asks first, but must not get the lock.
    let denied = world.perform(1, lock(&other, 7, RangeLock::Exclusive, false));
    assert!(matches!(denied, Ok(SessionAnswer::Lock(LockOutcome::Denied))), "{denied:?}");
    reply(world.perform(0, write(0, &file, b"data")));
    assert_eq!(bytes(world.perform(1, read(0, &file))), Ok(b"data".to_vec()));
    assert!(world.clients[0].notices.contains(&Notice::ClientLost));
    assert!(world.clients[0].notices.contains(&Notice::Reclaimed(1)));
    let unlocked = world.perform(0, lock(&one, 7, RangeLock::Free, false));
    assert!(matches!(unlocked, Ok(SessionAnswer::Lock(LockOutcome::Done))), "{unlocked:?}");
    let locked = world.perform(1, lock(&other, 7, RangeLock::Exclusive, false));
    assert!(matches!(locked, Ok(SessionAnswer::Lock(LockOutcome::Done))), "{locked:?}");
}

#[test]
fn delegations_are_reclaimed_with_or_without_an_open() {
    for kind in [DelegationKind::Read, DelegationKind::Write] {
        for is_open in [true, false] {
            let mut world =
                World::new(1, ServerSettings { delegations: true, ..Default::default() });
            let top = top(&mut world);
            let file = file(&mut world, &top, "f");
            world.pass(Duration::from_secs(10));
            let access =
                if kind == DelegationKind::Read { OpenAccess::Read } else { OpenAccess::Both };
            let open = opened(world.perform(0, open(0, &file, access)));
            assert_eq!(open.delegation, Some(kind));
            if !is_open {
                world.perform(0, SessionRequest::Close(open.open)).unwrap();
                world.pass(Duration::from_secs(10));
            }
            world.restart_server();
            world.until(|world| world.clients[0].ready == 2);
            let (now, machine) = (world.now, &world.clients[0].machine);
            assert_eq!(machine.delegation(now, &file), Some(kind), "{is_open}");
            assert_eq!(bytes(world.perform(0, read(0, &file))), Ok(vec![]));
        }
    }
}

#[test]
fn a_restart_during_the_reclaim_starts_it_again() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    let files: Vec<_> =
        (0..200).map(|number| file(&mut world, &top, &number.to_string())).collect();
    for file in &files {
        opened(world.perform(0, open(0, file, OpenAccess::Read)));
    }
    world.restart_server();
    world.pass(Duration::from_millis(12));
    assert_eq!(world.clients[0].ready, 1, "it is not ready yet");
    world.restart_server();
    for file in &files {
        assert_eq!(bytes(world.perform(0, read(0, file))), Ok(vec![]));
    }
    assert_eq!(world.server.engine().census().opens, 200);
}

#[test]
fn without_a_grace_period_opens_are_made_again_but_locks_are_lost() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    let (plain, locked) = (file(&mut world, &top, "plain"), file(&mut world, &top, "locked"));
    opened(world.perform(0, open(0, &plain, OpenAccess::Read)));
    let open = opened(world.perform(0, open(0, &locked, OpenAccess::Both)));
    world.perform(0, lock(&open, 7, RangeLock::Exclusive, false)).unwrap();
    world.server.forget_clients();
    world.restart_server();
    assert_eq!(bytes(world.perform(0, read(0, &plain))), Ok(vec![]));
    let lost = world.perform(0, read(0, &locked));
    assert!(matches!(lost, Err(CallFailure::StateLost)), "{lost:?}");
    assert!(world.clients[0].notices.contains(&Notice::StateLost(locked)));
    let closed = world.perform(0, SessionRequest::Close(open.open));
    assert!(matches!(closed, Err(CallFailure::StateLost)), "closing reports it, too");
    // A caller who opens the file after the loss is not affected.
    assert_eq!(bytes(world.perform(0, read(0, &locked))), Ok(vec![]));
}

#[test]
fn an_idle_client_notices_a_restart_in_time_by_its_renewal() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    let open = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    world.perform(0, lock(&open, 7, RangeLock::Exclusive, false)).unwrap();
    world.clients[0].machine.set_lease(LEASE);
    world.restart_server();
    world.pass(LEASE * 3);
    assert_eq!(world.server.engine().census().locks, 1);
    assert_eq!(bytes(world.perform(0, read(0, &file))), Ok(vec![]));
}

#[test]
fn a_client_whose_lease_expired_during_sleep_continues_without_its_state() {
    let mut world = World::new(2, ServerSettings::default());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    let one = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    world.perform(0, lock(&one, 7, RangeLock::Exclusive, false)).unwrap();
    // The client's machine sleeps for an hour.
    world.asleep = Some(0);
    world.cut(0);
    world.pass(Duration::from_secs(3600));
    let other = opened(world.perform(1, open(0, &file, OpenAccess::Both)));
    let locked = world.perform(1, lock(&other, 7, RangeLock::Exclusive, false));
    assert!(matches!(locked, Ok(SessionAnswer::Lock(LockOutcome::Done))), "{locked:?}");
    world.asleep = None;
    let lost = world.perform(0, read(0, &file));
    assert!(matches!(lost, Err(CallFailure::StateLost)), "{lost:?}");
    assert_eq!(bytes(world.perform(0, read(1, &file))), Ok(vec![]), "other users are not affected");
}

/// The server bound the connection of the first CREATE_SESSION, and repeats its reply over the next
/// one without binding it.
#[test]
fn a_session_whose_first_connection_ended_gets_another_for_callbacks() {
    let server = ServerSettings { delegations: true, ..ServerSettings::default() };
    let mut world = World::unconnected(server, vec![settings(0)]);
    world.until(|world| world.server.engine().census().sessions == 1);
    assert_eq!(world.clients[0].ready, 0, "the reply to CREATE_SESSION has not arrived");
    world.cut(0);
    world.until(|world| world.clients[0].ready == 1);
    world.pass(Duration::from_secs(1));
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    let open = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    assert_eq!(open.delegation, Some(DelegationKind::Write), "callbacks work");
}
