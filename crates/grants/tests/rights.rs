//! The rights of keys to objects.
#![allow(clippy::unwrap_used)]

mod world;

use comity_grants::Operation;
use comity_vfs::{Fs, Status};
use world::{Person, World, cred};

const ALL: &str = "look read search write set_attributes create delete";

#[test]
fn a_grant_on_a_directory_holds_for_what_is_below_it_and_nothing_else() {
    let world = World::new();
    let (alice, bob) = (Person::new(), Person::new());
    world.bind(&[(&alice, 1000)]);
    let top = world.fs.root();
    let (shared, private) = (world.mkdir(&top, "shared"), world.mkdir(&top, "private"));
    let below = world.mkdir(&shared, "below");
    let (file, secret) = (world.create(&below, "file"), world.create(&private, "secret"));
    world.submit(&bob, &[&alice.grants(&bob, &shared, "rx")]);
    for object in [&shared, &below, &file] {
        assert_eq!(world.allowed(&bob, object), "look read search");
    }
    for object in [&private, &secret] {
        assert_eq!(world.allowed(&bob, object), "");
    }
    let grantor = world.grantor(&world.holder(&bob), &file, Operation::Read).unwrap().unwrap();
    assert_eq!(grantor.cred, cred(1000));
}

#[test]
fn each_right_allows_its_operation_and_every_right_allows_to_look() {
    for (rights, allowed) in [
        ("r", "look read"),
        ("w", "look write"),
        ("x", "look search"),
        ("c", "look create"),
        ("d", "look delete"),
        ("a", "look set_attributes"),
        ("rwxcda", ALL),
        ("none", ""),
        ("rz", ""),
    ] {
        let world = World::new();
        let (alice, bob) = (Person::new(), Person::new());
        world.bind(&[(&alice, 1000)]);
        let dir = world.mkdir(&world.fs.root(), "dir");
        world.submit(&bob, &[&alice.grants(&bob, &dir, rights)]);
        assert_eq!(world.allowed(&bob, &dir), allowed, "{rights}");
    }
}

#[test]
fn rights_are_granted_further_as_far_as_they_reach() {
    let world = World::new();
    let (alice, bob, carol) = (Person::new(), Person::new(), Person::new());
    world.bind(&[(&alice, 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    let below = world.mkdir(&dir, "below");
    let to_bob = alice.grants(&bob, &dir, "rx");
    let to_carol = bob.grants(&carol, &below, "rw");
    world.submit(&carol, &[&to_bob, &to_carol]);
    // Bob had no right to write, so that he could not grant it.
    assert_eq!(world.allowed(&carol, &below), "look read");
    assert_eq!(world.allowed(&carol, &world.mkdir(&below, "deeper")), "look read");
    // The directory above leads to the object of the grant.
    assert_eq!(world.allowed(&carol, &dir), "look read search");
    assert_eq!(world.allowed(&bob, &dir), "", "Bob has submitted nothing");
}

#[test]
fn a_final_grant_is_not_granted_further() {
    let world = World::new();
    let (alice, bob, carol) = (Person::new(), Person::new(), Person::new());
    world.bind(&[(&alice, 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    let test = format!("requester == \"{}\"", bob.key().to_keynote());
    let to_bob = alice.grants_if(&bob, &dir, "rx", &test);
    world.submit(&bob, &[&to_bob]);
    world.submit(&carol, &[&to_bob, &bob.grants(&carol, &dir, "r")]);
    assert_eq!(world.allowed(&bob, &dir), "look read search");
    assert_eq!(world.allowed(&carol, &dir), "");
}

#[test]
fn a_moved_file_loses_the_rights_of_its_old_directory_at_once_or_within_a_second() {
    let world = World::new();
    let (alice, bob) = (Person::new(), Person::new());
    world.bind(&[(&alice, 1000)]);
    let top = world.fs.root();
    let (shared, private) = (world.mkdir(&top, "shared"), world.mkdir(&top, "private"));
    let (one, other) = (world.create(&shared, "one"), world.create(&shared, "other"));
    let dir = world.mkdir(&shared, "dir");
    let inside = world.create(&dir, "inside");
    world.submit(&bob, &[&alice.grants(&bob, &shared, "r")]);
    for object in [&one, &other, &dir, &inside] {
        assert_eq!(world.allowed(&bob, object), "look read");
    }
    // A move through the server counts at once.
    world.rename((&shared, "one"), (&private, "one"));
    world.grants.ancestry().moved();
    assert_eq!(world.allowed(&bob, &one), "");
    // A move by a program on the server counts a second later.
    world.rename((&shared, "other"), (&private, "other"));
    world.rename((&shared, "dir"), (&private, "dir"));
    world.pass_seconds(1);
    for object in [&other, &dir, &inside] {
        assert_eq!(world.allowed(&bob, object), "");
    }
}

#[test]
fn only_the_path_to_a_granted_object_is_open() {
    let world = World::new();
    let (alice, bob) = (Person::new(), Person::new());
    world.bind(&[(&alice, 1000)]);
    let top = world.fs.root();
    let above = world.mkdir(&top, "above");
    let (granted, beside) = (world.mkdir(&above, "granted"), world.mkdir(&above, "beside"));
    assert_eq!(world.allowed(&bob, &above), "");
    world.submit(&bob, &[&alice.grants(&bob, &granted, "rwxcda")]);
    assert_eq!(world.allowed(&bob, &granted), ALL);
    for way in [&top, &above] {
        assert_eq!(world.allowed(&bob, way), "look read search");
    }
    assert_eq!(world.allowed(&bob, &beside), "");
}

#[test]
fn rights_of_several_grantors_are_each_used_under_their_ids() {
    let world = World::new();
    let (alice, dave, bob) = (Person::new(), Person::new(), Person::new());
    world.bind(&[(&alice, 1000), (&dave, 2000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    world.submit(&bob, &[&alice.grants(&bob, &dir, "r"), &dave.grants(&bob, &dir, "w")]);
    let uid = |operation| {
        let grantor = world.grantor(&world.holder(&bob), &dir, operation).unwrap();
        grantor.map(|account| account.cred.uid.number())
    };
    assert_eq!(uid(Operation::Read), Some(1000));
    assert_eq!(uid(Operation::Write), Some(2000));
    assert_eq!(uid(Operation::Search), None);
}

#[test]
fn a_grant_ends_at_its_second() {
    let world = World::new();
    let (alice, bob) = (Person::new(), Person::new());
    world.bind(&[(&alice, 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    let end = comity_grants::Moment::from_seconds(world::BEGUN + 10);
    world.submit(&bob, &[&alice.grants_if(&bob, &dir, "r", &format!("now < \"{end}\""))]);
    world.pass_seconds(9);
    assert_eq!(world.allowed(&bob, &dir), "look read");
    world.pass_seconds(1);
    assert_eq!(world.allowed(&bob, &dir), "");
}

#[test]
fn a_removed_object_is_stale() {
    let world = World::new();
    let (alice, bob) = (Person::new(), Person::new());
    world.bind(&[(&alice, 1000)]);
    let top = world.fs.root();
    let dir = world.mkdir(&top, "dir");
    world.submit(&bob, &[&alice.grants(&bob, &dir, "r")]);
    world.fs.rmdir(&cred(0), &top, comity_vfs::Name::new(b"dir").unwrap()).unwrap();
    world.pass_seconds(2);
    let asked = world.grantor(&world.holder(&bob), &dir, Operation::Read);
    assert_eq!(asked, Err(Status::Stale));
}

#[test]
fn conditions_may_ask_for_the_export_the_operation_and_the_address() {
    let world = World::new();
    let (alice, bob) = (Person::new(), Person::new());
    world.bind(&[(&alice, 1000)]);
    let top = world.fs.root();
    let dirs = ["export", "operation", "address"].map(|name| world.mkdir(&top, name));
    let tests = ["export == \"/srv\"", "operation == \"look\"", "address == \"192.0.2.1\""];
    for (dir, test) in dirs.iter().zip(tests) {
        world.submit(&bob, &[&alice.grants_if(&bob, dir, "rx", test)]);
    }
    assert_eq!(world.allowed(&bob, &dirs[0]), "look read search");
    assert_eq!(world.allowed(&bob, &dirs[1]), "look");
    assert_eq!(world.allowed(&bob, &dirs[2]), "look read search");
    let elsewhere = comity_grants::Holder::new(&world.grants, bob.key(), [192, 0, 2, 2].into());
    assert_eq!(world.grantor(&elsewhere, &dirs[2], Operation::Read), Ok(None));
    let (holder, read) = (world.holder(&bob), Operation::Read);
    world.pass_seconds(2);
    let other = world
        .through("/other", |scene| holder.grantor(scene, &dirs[0], read).map(|it| it.is_some()));
    assert_eq!(other, Ok(false));
}
