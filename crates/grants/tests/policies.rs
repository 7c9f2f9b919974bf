//! Keys get rights from a policy, and from conditions on their hosts.
#![allow(clippy::unwrap_used)]

mod world;

use std::sync::Arc;

use comity_grants::{Holder, Operation, Outcome};
use comity_vfs::{Fs, Handle};
use world::{EXPORT, Person, World};

/// An export whose policy gives Bob the right to read it.
fn site(bob: &Person) -> (World, Handle) {
    let mut world = World::new();
    let key = bob.key().to_keynote();
    world.trust(&format!(
        "Authorizer: \"POLICY\"\nLicensees: \"{key}\"\n\
         Conditions: app_domain == \"Comity\" && export == \"{EXPORT}\" -> \"rx\";\n"
    ));
    let dir = world.mkdir(&world.fs.root(), "dir");
    (world, dir)
}

fn allowed(world: &World, holder: &Arc<Holder>, object: &Handle, operation: Operation) -> bool {
    world.grantor(holder, object, operation).unwrap().is_some()
}

#[test]
fn a_key_has_rights_by_the_policy_alone_and_acts_as_the_guest() {
    let (bob, carol) = (Person::new(), Person::new());
    let (world, dir) = site(&bob);
    let holder = world.guest(&bob, "");
    let account = world.grantor(&holder, &dir, Operation::Read).unwrap().unwrap();
    assert_eq!(account.user, "guest");
    assert!(!allowed(&world, &holder, &dir, Operation::Write));
    assert!(!allowed(&world, &world.guest(&carol, ""), &dir, Operation::Read));
    // Bob grants Carol the rights that he has by the policy.
    let on = bob.grants(&carol, &dir, "rw");
    world.submit(&carol, &[&on]);
    let carols = world.guest(&carol, "");
    assert!(allowed(&world, &carols, &dir, Operation::Read));
    assert!(!allowed(&world, &carols, &dir, Operation::Write));
    let report = world.through(EXPORT, |scene| {
        world.grants.why(carols.caller(), scene, &dir, Operation::Read).unwrap()
    });
    assert!(report.contains("allowed, as user guest"), "{report}");
    assert!(report.contains("the policy gives r\n      line 3: rx\n        Condi"), "{report}");
}

#[test]
fn rights_end_with_the_policy() {
    let (bob, carol) = (Person::new(), Person::new());
    let (mut world, dir) = site(&bob);
    let holder = world.guest(&bob, "");
    assert!(allowed(&world, &holder, &dir, Operation::Read));
    let before = world.grants.version();
    world.trust(&format!("Authorizer: \"POLICY\"\nLicensees: \"{}\"\n", carol.key().to_keynote()));
    assert!(!allowed(&world, &holder, &dir, Operation::Read));
    assert_ne!(world.grants.version(), before, "state that rests on it is looked at again");
    let submitted = world.grants.submit(carol.key(), &bob.grants(&carol, &dir, "r")).unwrap();
    assert_eq!(submitted[0].outcome, Outcome::NoAccount);
    let before = world.grants.version();
    world.grants.trust(Vec::new());
    assert_ne!(world.grants.version(), before);
}

#[test]
fn conditions_ask_for_the_address_and_the_names_of_the_host() {
    let world = World::new();
    let [alice, bob] = [(); 2].map(|()| Person::new());
    world.bind(&[(&alice, 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    for (test, names, expected) in [
        ("address == \"192.0.2.1\"", "", true),
        ("address ~= \"^198\"", "", false),
        ("client_names == \"\"", "", true),
        ("client_names ~= \"(^| )pc.example( |$)\"", "pc pc.example", true),
        ("client_names ~= \"(^| )pc.example( |$)\"", "pc pc.example.org", false),
        ("client_names ~= \"(^| )pc.example( |$)\"", "", false),
    ] {
        let grant = alice.grants_if(&bob, &dir, "r", test);
        world.submit(&bob, &[&grant]);
        let holder = world.guest(&bob, names);
        assert_eq!(allowed(&world, &holder, &dir, Operation::Read), expected, "{test} {names}");
        let digest = world.grants.held_by(&bob.key())[0].digest;
        world.grants.drop_held(&bob.key(), &[digest]).unwrap();
    }
}
