use std::time::Duration;

use comity_nfs4::Versions;
use comity_proto::nfs4::Nfsstat4;
use comity_vfs::OpenAccess;

use crate::machine::{Machine, Notice};
use crate::session::sim::world::settings;
use crate::session::sim::*;

#[test]
fn a_client_uses_the_highest_version_of_the_server() {
    for (versions, minor) in [([true, true, true], 2), ([true, true, false], 1)] {
        let server = ServerSettings { versions: Versions(versions), ..ServerSettings::default() };
        let world = World::new(1, server);
        assert_eq!(world.clients[0].machine.minor(), minor);
    }
    let server = ServerSettings { versions: Versions([true, false, false]), ..Default::default() };
    let mut world = World::unconnected(server, vec![settings(0)]);
    world.until(|world| world.clients[0].failed);
}

#[test]
fn a_dropped_session_is_replaced_and_opens_stay() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    let open = opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    drop_sessions(&mut world);
    assert_eq!(bytes(world.perform(0, read(0, &file))), Ok(vec![]));
    let notices = &world.clients[0].notices;
    assert_eq!(notices[..], [Notice::SessionLost(Nfsstat4::BadSession)]);
    world.perform(0, crate::session::SessionRequest::Close(open.open)).unwrap();
}

/// Makes the server drop the session but keep the client.
fn drop_sessions(world: &mut World) {
    let destroy = crate::compound::lone_operation(
        2,
        &owner(0).credential,
        comity_proto::nfs4::operation::DESTROY_SESSION,
        &world.clients[0].machine.sessionid(),
    );
    world.whisper(0, &destroy);
}

#[test]
fn requests_of_an_ended_session_are_executed_in_the_next() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    let ids: Vec<u64> = (0..100).map(|_| world.submit(0, nothing(&top))).collect();
    drop_sessions(&mut world);
    for id in ids {
        assert_eq!(reply(world.outcome(0, id)).status, Nfsstat4::Ok);
    }
    assert_eq!(world.clients[0].ready, 2);
}

#[test]
fn many_requests_wait_for_slots_and_all_complete() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    let ids: Vec<u64> = (0..1000).map(|_| world.submit(0, nothing(&top))).collect();
    assert!(world.clients[0].machine.bytes_in_flight() > 0);
    for id in ids {
        assert_eq!(reply(world.outcome(0, id)).status, Nfsstat4::Ok);
    }
    assert_eq!(world.clients[0].machine.bytes_in_flight(), 0);
}

#[test]
fn a_lease_is_renewed_while_nothing_is_asked() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    world.clients[0].machine.set_lease(Duration::from_secs(30));
    opened(world.perform(0, open(0, &file, OpenAccess::Read)));
    world.pass(Duration::from_secs(300));
    assert_eq!(bytes(world.perform(0, read(0, &file))), Ok(vec![]));
    assert!(world.clients[0].notices.is_empty(), "{:?}", world.clients[0].notices);
    let asked = world.sent.len();
    world.pass(Duration::from_secs(100));
    assert!(
        (9..=11).contains(&(world.sent.len() - asked)),
        "one renewal in each third of the lease"
    );
}

#[test]
fn delayed_requests_are_sent_again_after_growing_pauses() {
    let mut world = World::new(2, ServerSettings { delegations: true, ..Default::default() });
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    world.pass(Duration::from_secs(10));
    // The holder of the delegation does not receive recalls.
    opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    world.mute = Some(0);
    let asked = world.sent.len();
    let id = world.submit(1, open(0, &file, OpenAccess::Both));
    world.pass(Duration::from_secs(10));
    assert!(!world.clients[1].done.contains_key(&id));
    assert!((8..=14).contains(&(world.sent.len() - asked)), "{}", world.sent.len() - asked);
    world.pass(Duration::from_secs(60));
    assert!(world.clients[1].done.contains_key(&id), "the server has revoked the delegation");
}
