//! The creator of an object may grant rights to it, by a credential that is signed when it is
//! fetched.
#![allow(clippy::unwrap_used)]

mod world;

use comity_grants::{FetchError, Moment, Operation, Outcome, Revocation, Revoker};
use comity_vfs::{Fs, Handle};
use world::{BEGUN, Person, World};

/// Alice with an account, Bob who may create in her directory, and a file that Bob has created.
struct Case {
    world: World,
    alice: Person,
    bob: Person,
    carol: Person,
    dir: Handle,
    file: Handle,
    grant: String,
}

fn case_if(test: &str) -> Case {
    let world = World::new();
    let [alice, bob, carol] = [(); 3].map(|()| Person::new());
    world.bind(&[(&alice, 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    let grant = alice.grants_if(&bob, &dir, "xc", test);
    world.submit(&bob, &[&grant]);
    let file = world.create(&dir, "file");
    world.grants.created(&file, &bob.key());
    Case { world, alice, bob, carol, dir, file, grant }
}

fn case() -> Case {
    case_if("true")
}

const ALL: &str = "look read search write set_attributes create delete";

impl Case {
    fn fetch(&self, who: &Person) -> Result<String, FetchError> {
        self.world.grants.fetch(&self.file, &who.key())
    }

    /// Bob grants Carol the right to read his file.
    fn hand_on(&self) -> String {
        let fetched = self.fetch(&self.bob).unwrap();
        let on = self.bob.grants(&self.carol, &self.file, "r");
        self.world.submit(&self.carol, &[&fetched, &on]);
        fetched
    }

    fn carols(&self) -> String {
        self.world.allowed(&self.carol, &self.file)
    }
}

#[test]
fn a_creator_has_all_rights_to_what_it_made_at_once_and_nobody_else_does() {
    let case = case();
    assert_eq!(case.world.allowed(&case.bob, &case.file), ALL);
    let other = case.world.create(&case.dir, "other");
    assert_eq!(case.world.allowed(&case.bob, &other), "look search create");
    assert_eq!(case.carols(), "");
    // It is done under the ids of the account that let the creator create.
    let holder = case.world.holder(&case.bob);
    let account = case.world.grantor(&holder, &case.file, Operation::Write).unwrap().unwrap();
    assert_eq!(account.user, "user1000");
}

#[test]
fn the_credential_of_a_creator_is_the_same_each_time_and_only_its_own() {
    let case = case();
    let fetched = case.fetch(&case.bob).unwrap();
    assert_eq!(case.fetch(&case.bob).unwrap(), fetched);
    assert!(matches!(case.fetch(&case.carol), Err(FetchError::NotCreator)));
    // A user needs no such credential.
    case.world.grants.created(&case.dir, &case.alice.key());
    let of_user = case.world.grants.fetch(&case.dir, &case.alice.key());
    assert!(matches!(of_user, Err(FetchError::NotCreator)));
    // A server with another key does not accept it.
    let other = World::after(case.world.kept.clone(), &case.world.fs, BEGUN);
    let submitted = other.grants.submit(case.bob.key(), &fetched).unwrap();
    assert_eq!(submitted[0].outcome, Outcome::NoAccount);
}

#[test]
fn a_fetched_credential_is_the_base_of_further_grants() {
    let case = case();
    let fetched = case.hand_on();
    assert_eq!(case.carols(), "look read");
    // A chain without the link from the server to the creator grants nothing.
    let dave = Person::new();
    let on = case.bob.grants(&dave, &case.file, "r");
    let submitted = case.world.grants.submit(dave.key(), &on).unwrap();
    assert_eq!(submitted[0].outcome, Outcome::NoAccount);
    // It applies only to that object.
    let other = case.world.create(&case.dir, "other");
    case.world.submit(&case.carol, &[&fetched, &case.bob.grants(&case.carol, &other, "r")]);
    assert_eq!(case.world.allowed(&case.carol, &other), "");
}

#[test]
fn rights_by_creation_end_with_the_right_to_create() {
    let case = case();
    case.hand_on();
    let alice = Revoker::Key(case.alice.key());
    case.world.grants.revoke(alice, &Revocation::Text(case.grant.clone())).unwrap();
    assert_eq!((case.world.allowed(&case.bob, &case.file), case.carols()), Default::default());

    let end = Moment::from_seconds(BEGUN + 10);
    let case = case_if(&format!("now < \"{end}\""));
    case.hand_on();
    assert_eq!(case.carols(), "look read");
    case.world.pass_seconds(11);
    assert_eq!((case.world.allowed(&case.bob, &case.file), case.carols()), Default::default());
}

#[test]
fn a_creator_whose_grant_is_final_grants_nothing() {
    let case = case();
    let requester = format!("requester == \"{}\"", case.bob.key().to_keynote());
    let case = Case { grant: String::new(), ..case };
    let world = World::new();
    world.bind(&[(&case.alice, 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    world.submit(&case.bob, &[&case.alice.grants_if(&case.bob, &dir, "xc", &requester)]);
    let file = world.create(&dir, "file");
    world.grants.created(&file, &case.bob.key());
    let case = Case { world, dir, file, ..case };
    case.hand_on();
    assert_eq!(case.world.allowed(&case.bob, &case.file), ALL);
    assert_eq!(case.carols(), "");
}

#[test]
fn rights_by_creation_end_when_the_object_is_moved_away() {
    let case = case();
    let away = case.world.mkdir(&case.world.fs.root(), "away");
    case.hand_on();
    case.world.rename((&case.dir, "file"), (&away, "file"));
    case.world.grants.ancestry().moved();
    assert_eq!((case.world.allowed(&case.bob, &case.file), case.carols()), Default::default());
}

#[test]
fn the_credential_of_a_creator_is_revoked_by_those_above_it() {
    let case = case();
    let fetched = case.hand_on();
    let what = Revocation::Text(fetched);
    assert!(case.world.grants.revoke(Revoker::Key(case.carol.key()), &what).is_err());
    assert!(case.world.grants.revoke(Revoker::Key(case.bob.key()), &what).is_err());
    case.world.grants.revoke(Revoker::Key(case.alice.key()), &what).unwrap();
    assert_eq!(case.carols(), "");
    assert_eq!(case.world.allowed(&case.bob, &case.file), "look search create");
    assert!(matches!(case.fetch(&case.bob), Err(FetchError::NotCreator)));
}

impl Case {
    /// Bob's rights to his file on a server that starts with the current storage.
    fn after_a_restart(&self) -> String {
        let world = World::after(self.world.kept.clone(), &self.world.fs, BEGUN);
        world.bind(&[(&self.alice, 1000)]);
        world.grants.ancestry().met(&world.key(&self.file), &self.dir, b"file");
        world.allowed(&self.bob, &self.file)
    }
}

#[test]
fn the_creator_of_an_object_is_known_after_a_restart() {
    let case = case();
    assert_eq!(case.after_a_restart(), "look search create");
    case.world.grants.store_creations().unwrap();
    assert_eq!(case.after_a_restart(), ALL);
    let stored = case.world.kept.records().len();
    case.world.grants.store_creations().unwrap();
    assert_eq!(case.world.kept.records().len(), stored);
}

#[test]
fn a_creation_that_was_revoked_does_not_come_back_by_a_restart() {
    let case = case();
    case.world.grants.store_creations().unwrap();
    let fetched = case.fetch(&case.bob).unwrap();
    case.world.grants.revoke(Revoker::Administrator, &Revocation::Text(fetched)).unwrap();
    assert_eq!(case.after_a_restart(), "look search create");
}

#[test]
fn creators_that_could_not_be_stored_are_stored_later() {
    let case = case();
    case.world.kept.fail(true);
    assert!(case.world.grants.store_creations().is_err());
    case.world.pass_seconds(1);
    assert!(case.world.grants.store_creations().is_err());
    // A server that ends does not wait for the pause.
    assert!(case.world.grants.store_at_end().is_err());
    case.world.kept.fail(false);
    case.world.grants.store_at_end().unwrap();
    assert_eq!(case.after_a_restart(), ALL);
}
