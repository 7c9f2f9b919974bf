//! Credentials and revocations on storage that is slow, full, or fails.
#![allow(clippy::unwrap_used)]

mod world;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use comity_grants::limits::{REVOCATIONS_BY_ADMINISTRATOR_MAX, REVOCATIONS_PER_KEY_MAX};
use comity_grants::{
    Medium, MediumError, Operation, Record, Recovered, RememberedRevocation, Revocation,
    RevokeError, Revoked, Revoker, SubmitError,
};
use comity_keynote::{AssertionDigest, SignedAssertion};
use comity_vfs::{AsServer, Fs, Handle};
use rustix::time::{ClockId, clock_gettime};
use world::{BEGUN, Kept, Person, World};

/// Longest wait for something that happens at once.
const AT_ONCE: Duration = Duration::from_secs(20);

fn digest(text: &str) -> AssertionDigest {
    *SignedAssertion::parse(text).unwrap().digest()
}

/// A medium whose writes wait until the test releases them.
struct Gated {
    arrived: mpsc::Sender<()>,
    go_on: Mutex<mpsc::Receiver<()>>,
}

impl Medium for Gated {
    fn store(&self, _: &AsServer, _: &[Record]) -> Result<(), MediumError> {
        self.arrived.send(())?;
        self.go_on.lock().unwrap().recv()?;
        Ok(())
    }

    fn replace(&self, _: &AsServer, _: &[Record]) -> Result<(), MediumError> {
        Ok(())
    }
}

/// A change of the held or revoked credentials, which is stored before it takes effect.
type Change = fn(&World, &Person, &Person, &str);

#[test]
fn rights_are_read_while_a_change_is_being_stored() {
    let changes: [Change; 3] = [
        |world, _, bob, text| drop(world.grants.submit(bob.key(), text).unwrap()),
        |world, alice, _, text| {
            let what = Revocation::Credential(digest(text));
            world.grants.revoke(Revoker::Key(alice.key()), &what).unwrap();
        },
        |world, _, bob, text| {
            assert_eq!(world.grants.drop_held(&bob.key(), &[digest(text)]).unwrap(), 1);
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let (arrived, arrivals) = mpsc::channel();
        let (let_go, go_on) = mpsc::channel();
        let gated = Gated { arrived, go_on: Mutex::new(go_on) };
        let mut world = World::new();
        let [alice, bob, carol] = [(); 3].map(|()| Person::new());
        let dir = world.mkdir(&world.fs.root(), "dir");
        let text = alice.grants(&bob, &dir, "r");
        let before = alice.grants(&carol, &dir, "r");
        let mut held = vec![(carol.key(), before)];
        // The other changes need the credential that the first one submits.
        held.extend((number > 0).then(|| (bob.key(), text.clone())));
        let recovered = Recovered { held, ..Recovered::default() };
        world.grants = world::grants(&world.now, Box::new(gated), recovered);
        world.bind(&[(&alice, 1000)]);
        let world = &world;
        thread::scope(|scope| {
            let (alice, bob, text) = (&alice, &bob, &text);
            let changing = scope.spawn(move || change(world, alice, bob, text));
            arrivals.recv_timeout(AT_ONCE).unwrap();
            let (told, hears) = mpsc::channel();
            scope.spawn(move || told.send((world.allowed(&carol, &dir), world.allowed(bob, &dir))));
            let read = hears.recv_timeout(AT_ONCE);
            let_go.send(()).unwrap();
            changing.join().unwrap();
            let (of_carol, of_bob) = read.expect("a reader waits for the disk");
            assert!(of_carol.contains("read"), "{of_carol}");
            assert_eq!(
                of_bob.contains("read"),
                number > 0,
                "nothing takes effect before it is stored"
            );
        });
        assert_eq!(world.allowed(&bob, &dir).contains("read"), number == 0);
    }
}

#[test]
fn a_key_without_grants_revokes_nothing() {
    let world = World::new();
    let [alice, bob, mallory] = [(); 3].map(|()| Person::new());
    world.bind(&[(&alice, 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    let by = Revoker::Key(mallory.key());
    let text = Revocation::Text(mallory.grants(&bob, &dir, "r"));
    let refused = world.grants.revoke(by, &text);
    assert!(matches!(refused, Err(RevokeError::Stranger)), "{refused:?}");
    assert_eq!(world.kept.records(), []);
    // A key with a grant may revoke the credentials that it will sign.
    world.submit(&mallory, &[&alice.grants(&mallory, &dir, "r")]);
    world.grants.revoke(by, &text).unwrap();
}

/// A revocation of a credential that the server has not seen.
fn other(number: usize, by: Revoker) -> RememberedRevocation {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    let what = Revoked::Credential(AssertionDigest::from_bytes(bytes));
    RememberedRevocation { what, until: comity_grants::Moment::NEVER, by }
}

#[test]
fn a_key_that_has_used_up_its_revocations_is_refused_before_anything_is_stored() {
    let world = World::new();
    let [alice, bob, carol] = [(); 3].map(|()| Person::new());
    let dir = world.mkdir(&world.fs.root(), "dir");
    let full = (0..REVOCATIONS_PER_KEY_MAX).map(|at| other(at, Revoker::Key(bob.key())));
    let recovered = Recovered { revoked: full.collect(), ..Recovered::default() };
    let kept = Kept::default();
    let grants = world::grants(&world.now, Box::new(kept.clone()), recovered);
    let world = World { grants, kept, ..world };
    world.bind(&[(&alice, 1000)]);
    let first = alice.grants(&bob, &dir, "r");
    let second = bob.grants(&carol, &dir, "r");
    world.submit(&bob, &[&first]);
    world.submit(&carol, &[&first, &second]);
    let stored = world.kept.records().len();
    let revoke = |by| world.grants.revoke(by, &Revocation::Credential(digest(&second)));
    assert!(matches!(revoke(Revoker::Key(bob.key())), Err(RevokeError::KeyFull)));
    assert_eq!(world.kept.records().len(), stored);
    assert!(world.allowed(&carol, &dir).contains("read"));
    // Others above in the chain have their own limit.
    revoke(Revoker::Key(alice.key())).unwrap();
    // Revoking again uses no room.
    revoke(Revoker::Key(bob.key())).unwrap();
}

#[test]
fn an_administrator_has_room_that_keys_cannot_use_up() {
    let world = World::new();
    let bob = Person::new();
    let keys_max = comity_grants::limits::REVOCATIONS_BY_KEYS_MAX;
    let of_keys = (0..keys_max).map(|at| other(at, Revoker::Key(bob.key())));
    let free = 2;
    let used = REVOCATIONS_BY_ADMINISTRATOR_MAX - free;
    let of_admin = (keys_max..keys_max + used).map(|at| other(at, Revoker::Administrator));
    let revoked = of_keys.chain(of_admin).collect();
    let recovered = Recovered { revoked, ..Recovered::default() };
    let kept = Kept::default();
    let grants = world::grants(&world.now, Box::new(kept.clone()), recovered);
    let revoke = || grants.revoke(Revoker::Administrator, &Revocation::Key(Person::new().key()));
    for _ in 0..free {
        revoke().unwrap();
    }
    assert!(matches!(revoke(), Err(RevokeError::AdministratorFull)));
    assert_eq!(kept.records().len(), free);
}

/// A medium that always fails, and counts the writes.
#[derive(Clone, Default)]
struct Failing(Arc<AtomicUsize>);

impl Medium for Failing {
    fn store(&self, _: &AsServer, _: &[Record]) -> Result<(), MediumError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err("the disk is full".into())
    }

    fn replace(&self, server: &AsServer, records: &[Record]) -> Result<(), MediumError> {
        self.store(server, records)
    }
}

#[test]
fn a_failed_write_is_tried_again_after_pauses_that_double_up_to_a_minute() {
    let mut world = World::new();
    let [alice, bob] = [(); 2].map(|()| Person::new());
    let failing = Failing::default();
    let medium = Box::new(failing.clone());
    world.grants = world::grants(&world.now, medium, Recovered::default());
    world.bind(&[(&alice, 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    let text = alice.grants(&bob, &dir, "r");
    let refused = |text: &str| {
        let refused = world.grants.submit(bob.key(), text);
        assert!(matches!(refused, Err(SubmitError::Store(_))), "{refused:?}");
    };
    refused(&text);
    assert!(world.grants.storage_failure().unwrap().contains("the disk is full"));
    let mut tries = vec![];
    for second in 1..=400 {
        world.pass_seconds(1);
        let before = failing.0.load(Ordering::Relaxed);
        // A key cannot make the server write more often.
        refused(&text);
        let _ = world.grants.expire();
        let _ = world.grants.store_creations();
        let made = failing.0.load(Ordering::Relaxed) - before;
        assert!(made <= 1, "{made} tries in second {second}");
        tries.extend((made == 1).then_some(second));
    }
    let pauses: Vec<_> = tries.windows(2).map(|two| two[1] - two[0]).collect();
    assert_eq!(pauses[..7], [2, 4, 8, 16, 32, 60, 60], "{tries:?}");
    // An administrator does not have to wait.
    let before = failing.0.load(Ordering::Relaxed);
    let by = Revoker::Administrator;
    assert!(world.grants.revoke(by, &Revocation::Key(bob.key())).is_err());
    assert_eq!(failing.0.load(Ordering::Relaxed), before + 1);
}

#[test]
fn storage_that_works_again_gets_all_that_is_known() {
    let world = World::new();
    let [alice, bob, carol] = [(); 3].map(|()| Person::new());
    world.bind(&[(&alice, 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    world.submit(&bob, &[&alice.grants(&bob, &dir, "r")]);
    world.kept.fail(true);
    assert!(world.grants.submit(carol.key(), &alice.grants(&carol, &dir, "r")).is_err());
    world.kept.fail(false);
    world.pass_seconds(1);
    world.grants.expire().unwrap();
    world.grants.store_creations().unwrap();
    assert_eq!(world.grants.storage_failure(), None);
    assert_eq!(world.kept.recovered().held.len(), 1);
    let again = World::after(world.kept.clone(), &world.fs, BEGUN + 5);
    again.bind(&[(&alice, 1000)]);
    assert!(again.allowed(&bob, &dir).contains("read"));
}

/// The processor time of this thread so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The processor time in which a key at the top of a chain of `links` links revokes the last one.
fn time_to_revoke_the_end_of_a_chain(links: usize) -> Duration {
    let world = World::new();
    let people: Vec<_> = (0..=links).map(|_| Person::new()).collect();
    world.bind(&[(&people[0], 1000)]);
    let dir = world.mkdir(&world.fs.root(), "dir");
    let end = &people[links];
    let texts: Vec<_> = people.windows(2).map(|two| two[0].grants(&two[1], &dir, "r")).collect();
    let held = texts.iter().map(|text| (end.key(), text.clone())).collect();
    let kept = Kept::default();
    let recovered = Recovered { held, ..Recovered::default() };
    let grants = world::grants(&world.now, Box::new(kept), recovered);
    let began = processor_time();
    let refused = grants
        .revoke(Revoker::Key(people[0].key()), &Revocation::Credential(digest(&texts[links - 1])));
    refused.unwrap();
    processor_time() - began
}

#[test]
fn the_time_to_revoke_grows_with_the_credentials_and_not_with_their_square() {
    let fastest = |links| {
        (0..2).map(|_| time_to_revoke_the_end_of_a_chain(links)).min().unwrap().as_secs_f64()
    };
    let (short, long) = (fastest(150), fastest(1_200));
    // The chain is eight times as long. Quadratic growth would take 64 times as long.
    assert!(long < 24.0 * short.max(0.0005), "{short} s, {long} s");
}

#[test]
fn operations_are_decided_the_same_way_after_credentials_were_dropped_together() {
    let world = World::new();
    let [alice, bob] = [(); 2].map(|()| Person::new());
    world.bind(&[(&alice, 1000)]);
    let dirs: Vec<Handle> =
        ["a", "b"].map(|name| world.mkdir(&world.fs.root(), name)).into_iter().collect();
    let texts: Vec<_> = (0..6)
        .map(|at| alice.grants_if(&bob, &dirs[at % 2], "r", &format!("\"{at}\" == \"{at}\"")))
        .collect();
    texts.iter().for_each(|text| world.submit(&bob, &[text]));
    let digests: Vec<_> = texts.iter().map(|text| digest(text)).collect();
    // All of one directory, and one of the other directory.
    let gone = [digests[0], digests[2], digests[4], digests[1]];
    assert_eq!(world.grants.drop_held(&bob.key(), &gone).unwrap(), 4);
    assert_eq!(world.grants.held_by(&bob.key()).len(), 2);
    let holder = world.holder(&bob);
    let may = |dir| world.grantor(&holder, dir, Operation::Read).unwrap().is_some();
    assert_eq!([may(&dirs[0]), may(&dirs[1])], [false, true]);
    assert_eq!(world.grants.signed_by(&alice.key()).len(), 2);
}
