//! Delegations of directories.

use std::time::Duration;

use comity_proto::nfs4::Nfsstat4;
use comity_vfs::DelegationNumber;

use crate::machine::StateEvent;
use crate::server_handle::ServerHandle;
use crate::session::SessionRequest;
use crate::session::sim::world::settings;
use crate::session::sim::*;

fn delegating() -> ServerSettings {
    ServerSettings { delegations: true, ..ServerSettings::default() }
}

/// Two clients, of which the first has a delegation of the exported directory.
fn holding(hands_up_recalls: bool) -> (World, ServerHandle, DelegationNumber) {
    let mut one = settings(0);
    one.hands_up_recalls = hands_up_recalls;
    let mut world = World::with(delegating(), vec![one, settings(1)]);
    let top = top(&mut world);
    world.pass(Duration::from_secs(1));
    let grant = granted(world.perform(0, delegate(&top))).unwrap();
    assert_eq!(held(&world, &top), Some(grant));
    (world, top, grant)
}

fn held(world: &World, directory: &ServerHandle) -> Option<DelegationNumber> {
    world.clients[0].machine.directory_grant(world.now, directory)
}

#[test]
fn own_changes_leave_a_directory_delegated() {
    let (mut world, top, grant) = holding(true);
    assert_eq!(reply(world.perform(0, mkdir(&top, "own"))).status, Nfsstat4::Ok);
    assert_eq!(held(&world, &top), Some(grant));
    assert!(world.clients[0].events.is_empty());
    assert_eq!(
        world.clients[0].machine.delegation(world.now, &top),
        None,
        "a directory's delegation is not one of a file"
    );
}

#[test]
fn a_directory_delegation_is_not_requested_while_one_is_held() {
    let (mut world, top, grant) = holding(true);
    assert_eq!(granted(world.perform(0, delegate(&top))), None);
    assert_eq!(held(&world, &top), Some(grant));
}

#[test]
fn a_change_by_another_client_waits_until_the_directory_is_returned() {
    let (mut world, top, grant) = holding(true);
    let change = world.submit(1, mkdir(&top, "other"));
    world.until(|world| !world.clients[0].events.is_empty());
    let recalled = StateEvent::Recalled { file: top, is_truncated: false };
    assert_eq!(world.clients[0].events, [recalled]);
    assert_eq!(held(&world, &top), None, "a recalled delegation is not used");
    world.perform(0, SessionRequest::Return(top)).unwrap();
    assert_eq!(reply(world.outcome(1, change)).status, Nfsstat4::Ok);
    let again = granted(world.perform(0, delegate(&top))).unwrap();
    assert_ne!(again, grant, "the next delegation is another one");
}

#[test]
fn a_directory_is_returned_at_once_if_nobody_handles_recalls() {
    let (mut world, top, _) = holding(false);
    assert_eq!(reply(world.perform(1, mkdir(&top, "other"))).status, Nfsstat4::Ok);
    assert_eq!(held(&world, &top), None);
}

#[test]
fn a_directory_delegation_is_not_used_after_the_lease() {
    let (mut world, top, _) = holding(true);
    world.stop_server();
    world.pass(Duration::from_secs(91));
    assert_eq!(held(&world, &top), None);
}

#[test]
fn a_directory_delegation_is_lost_when_the_server_restarts() {
    let (mut world, top, grant) = holding(true);
    world.restart_server();
    world.pass(Duration::from_secs(60));
    assert_eq!(held(&world, &top), None);
    assert_eq!(world.clients[0].events, [StateEvent::DelegationLost(top)]);
    let again = granted(world.perform(0, delegate(&top))).unwrap();
    assert_ne!(again, grant);
}

#[test]
fn a_revoked_directory_delegation_is_not_used() {
    let (mut world, top, _) = holding(true);
    // The recall is lost, so the server revokes the delegation.
    world.mute = Some(0);
    assert_eq!(reply(world.perform(1, mkdir(&top, "other"))).status, Nfsstat4::Ok);
    world.mute = None;
    reply(world.perform(0, nothing(&top)));
    world.pass(Duration::from_secs(10));
    assert_eq!(world.clients[0].events, [StateEvent::DelegationLost(top)]);
}
