use std::time::Duration;

use comity_proto::nfs4::Nfsstat4;

use crate::machine::{CallFailure, Notice};
use crate::session::Persistence;
use crate::session::sim::world::settings;
use crate::session::sim::*;

#[test]
fn a_reply_that_is_lost_with_its_connection_is_fetched_from_the_slot() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    world.faults = Faults { cut_behind: 1000, ..Faults::default() };
    let id = world.submit(0, mkdir(&top, "d"));
    world.pass(Duration::from_millis(3));
    world.faults = Faults::default();
    let reply = reply(world.outcome(0, id));
    assert_eq!(reply.status, Nfsstat4::Ok, "a second execution would return EXIST");
    assert!(world.clients[0].notices.is_empty(), "{:?}", world.clients[0].notices);
}

#[test]
fn a_request_that_is_lost_with_its_connection_is_sent_over_the_next() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    world.faults = Faults { cut_before: 1000, ..Faults::default() };
    let id = world.submit(0, mkdir(&top, "d"));
    world.pass(Duration::from_millis(3));
    world.faults = Faults::default();
    assert_eq!(reply(world.outcome(0, id)).status, Nfsstat4::Ok);
}

#[test]
fn a_reply_that_comes_twice_answers_once() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    world.faults = Faults { doubled: 1000, ..Faults::default() };
    for number in 0..20 {
        let made = world.perform(0, mkdir(&top, &number.to_string()));
        assert_eq!(reply(made).status, Nfsstat4::Ok);
    }
}

#[test]
fn with_several_connections_requests_continue_over_the_remaining_ones() {
    let mut one = settings(0);
    one.connections = 4;
    let mut world = World::with(ServerSettings::default(), vec![one]);
    let top = top(&mut world);
    let ids: Vec<u64> = (0..40).map(|_| world.submit(0, nothing(&top))).collect();
    world.cut(0);
    for id in ids {
        assert_eq!(reply(world.outcome(0, id)).status, Nfsstat4::Ok);
    }
}

#[test]
fn while_the_server_is_unreachable_requests_wait_and_the_log_reports_it_once() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    world.stop_server();
    let id = world.submit(0, nothing(&top));
    world.pass(Duration::from_secs(200));
    let silent = |notice: &&Notice| **notice == Notice::NotResponding;
    assert_eq!(world.clients[0].notices.iter().filter(silent).count(), 1);
    world.start_server();
    assert_eq!(reply(world.outcome(0, id)).status, Nfsstat4::Ok);
    assert!(world.clients[0].notices.contains(&Notice::RespondsAgain));
}

#[test]
fn a_soft_request_times_out_and_its_slot_is_used_again_later() {
    let mut one = settings(0);
    one.persistence = Persistence::Soft(Duration::from_secs(30));
    let mut world = World::with(ServerSettings::default(), vec![one]);
    let top = top(&mut world);
    world.stop_server();
    let begun = world.now;
    let failed = world.perform(0, nothing(&top));
    assert!(matches!(failed, Err(CallFailure::TimedOut)), "{failed:?}");
    assert_eq!((world.now - begun).as_secs(), 30);
    world.start_server();
    for _ in 0..200 {
        assert_eq!(reply(world.perform(0, nothing(&top))).status, Nfsstat4::Ok);
    }
}

#[test]
fn a_request_without_a_caller_keeps_its_slot_until_it_is_answered() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    let id = world.submit(0, mkdir(&top, "d"));
    world.forsake(0, id);
    world.pass(Duration::from_secs(1));
    assert!(!world.clients[0].done.contains_key(&id));
    let again = reply(world.perform(0, mkdir(&top, "d")));
    assert_eq!(
        again.status,
        Nfsstat4::Exist,
        "the first call was executed although its caller gave up"
    );
}

#[test]
fn a_server_that_accepts_but_stays_silent_is_connected_to_again() {
    let mut world = World::new(1, ServerSettings::default());
    let top = top(&mut world);
    world.deaf = true;
    let id = world.submit(0, nothing(&top));
    world.pass(Duration::from_secs(170));
    assert!(!world.clients[0].done.contains_key(&id));
    world.deaf = false;
    world.pass(Duration::from_secs(20));
    assert!(world.clients[0].done.contains_key(&id), "over another connection");
}
