use std::time::Duration;

use comity_vfs::OpenAccess;

use crate::machine::Notice;
use crate::machine::StateEvent;
use crate::session::sim::world::settings;
use crate::session::sim::*;

fn delegating() -> ServerSettings {
    ServerSettings { delegations: true, ..ServerSettings::default() }
}

#[test]
fn a_revoked_delegation_is_found_and_freed() {
    let mut one = settings(0);
    one.hands_up_recalls = true;
    let mut world = World::with(delegating(), vec![one, settings(1)]);
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    world.pass(Duration::from_secs(10));
    opened(world.perform(0, open(0, &file, OpenAccess::Both)));
    // The recall is lost, so the server revokes the delegation.
    world.mute = Some(0);
    opened(world.perform(1, open(0, &file, OpenAccess::Both)));
    world.mute = None;
    // The reply to the next request reports the revocation.
    reply(world.perform(0, nothing(&top)));
    world.pass(Duration::from_secs(10));
    let lost = StateEvent::DelegationLost(file);
    assert_eq!(world.clients[0].events, [lost]);
    assert!(world.clients[0].notices.contains(&Notice::DelegationLost(file)));
    assert_eq!(bytes(world.perform(0, read(0, &file))), Ok(vec![]));
    reply(world.perform(0, nothing(&top)));
    assert_eq!(world.clients[0].events.len(), 1, "it is reported once");
}

#[test]
fn a_read_whose_delegation_has_ended_uses_an_open() {
    let mut world = World::new(2, delegating());
    let top = top(&mut world);
    let file = file(&mut world, &top, "f");
    world.pass(Duration::from_secs(10));
    let held = opened(world.perform(0, open(0, &file, OpenAccess::Read)));
    assert!(held.delegation.is_some());
    world.mute = Some(0);
    opened(world.perform(1, open(0, &file, OpenAccess::Both)));
    world.mute = None;
    assert_eq!(bytes(world.perform(0, read(0, &file))), Ok(vec![]));
}
