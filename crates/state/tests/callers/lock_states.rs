//! A lock-owner has one lock stateid for each open of a file (RFC 8881, 9.1.3), and one set of
//! locked bytes of the file for all of them.

use comity_state::{
    ByteRange, Engine, Error, Lock, LockRefusal, LockType, Locker, Result, Stateid,
};

use crate::people::{
    NOW, PLAIN, Person, SECOND, USER, VICTIM, Wish, caller, client_41, engine, file, open,
};

const FIRST: ByteRange = ByteRange { first: 0, last: 9 };
const NEXT: ByteRange = ByteRange { first: 20, last: 29 };

fn lock_by(
    engine: &Engine,
    person: &Person,
    range: ByteRange,
    locker: Locker<'_>,
) -> Result<Stateid, LockRefusal> {
    let (file, kind) = (file(1), LockType::Write);
    let args = Lock { file, range, kind, reclaim: false, wait: false, locker };
    engine.lock(person.sender(NOW, USER), &args)
}

/// One lock-owner locks bytes under two opens of file 1 by two open-owners; returns the stateids of
/// the opens and locks.
fn two_opens(engine: &Engine, person: &Person) -> [(Stateid, Stateid); 2] {
    let owners = [(&b"o"[..], FIRST, 1), (b"p", NEXT, 2)];
    owners.map(|(owner, range, seqid)| {
        let open = open(engine, person, Wish { owner, ..PLAIN }).stateid;
        let locker = Locker::New { open, owner: b"l", seqid };
        (open, lock_by(engine, person, range, locker).unwrap())
    })
}

/// Returns whether another client finds bytes locked.
fn is_locked(engine: &Engine, other: &Person, range: ByteRange) -> bool {
    let wish = (&file(1), range, LockType::Read);
    match engine.test_lock((NOW, USER), &other.client, b"m", wish) {
        Ok(()) => false,
        Err(LockRefusal::Denied { .. }) => true,
        Err(error) => panic!("{error:?}"),
    }
}

fn other(engine: &Engine) -> Person {
    let (client, _) = client_41(engine, caller(0, 7), "other");
    Person { client, has_sessions: true }
}

#[test]
fn a_lock_owner_has_a_stateid_for_each_open() {
    for (engine, person) in Person::both(engine) {
        let [(open, first), (_, second)] = two_opens(&engine, &person);
        assert_ne!(first.other, second.other);
        // The second request is under the first open, so that its stateid is the first one with a
        // higher seqid.
        let locker = Locker::New { open, owner: b"l", seqid: 3 };
        let more = ByteRange { first: 40, last: 49 };
        let again = lock_by(&engine, &person, more, locker).unwrap();
        assert_eq!((again.other, again.seqid), (first.other, first.seqid + 1));
        let known = lock_by(&engine, &person, more, Locker::Known { lock: second }).unwrap();
        assert_eq!((known.other, known.seqid), (second.other, second.seqid + 1));
    }
}

/// Both states belong to one owner: neither blocks the other, and both can free the same bytes.
#[test]
fn a_lock_owner_does_not_conflict_with_itself_under_another_open() {
    for (engine, person) in Person::both(engine) {
        let [(_, first), (_, second)] = two_opens(&engine, &person);
        let other = other(&engine);
        let sender = person.sender(NOW, USER);
        let locked = lock_by(&engine, &person, NEXT, Locker::Known { lock: first });
        locked.expect("it conflicts with its own lock");
        engine.unlock(sender, &second, (&file(1), FIRST)).unwrap();
        assert!(!is_locked(&engine, &other, FIRST));
        assert!(is_locked(&engine, &other, NEXT));
    }
}

#[test]
fn bytes_stay_locked_until_the_last_open_of_their_owner_is_closed() {
    for closes_first in [0, 1] {
        for (engine, person) in Person::both(engine) {
            let before = engine.census();
            let opens = two_opens(&engine, &person);
            let other = other(&engine);
            let at = (person.sender(NOW, USER), &file(1));
            engine.close(at, &opens[closes_first].0).unwrap();
            assert!(is_locked(&engine, &other, FIRST) && is_locked(&engine, &other, NEXT));
            let gone = engine.test_stateid(at.0, &opens[closes_first].1);
            assert_eq!(gone, Err(Error::BadStateid), "its stateid ended with the open");
            engine.close(at, &opens[1 - closes_first].0).unwrap();
            assert!(!is_locked(&engine, &other, ByteRange::ALL));
            let census = engine.census();
            assert_eq!((census.locks, census.opens), (before.locks, before.opens));
        }
    }
}

/// Closed opens of minor version 0 are kept for a retry until the lease has passed; then everything
/// is freed.
#[test]
fn locks_under_two_opens_leave_nothing_behind() {
    for (engine, person) in Person::both(engine) {
        let before = engine.census();
        for (open, _) in two_opens(&engine, &person) {
            engine.close((person.sender(NOW, USER), &file(1)), &open).unwrap();
        }
        let lease = engine.settings().lease;
        engine.tick(NOW + lease / 2);
        if !person.has_sessions {
            engine.renew(NOW + lease - SECOND, person.client.id(), VICTIM).unwrap();
            engine.tick(NOW + lease + SECOND);
        }
        let census = engine.census();
        assert_eq!((census.locks, census.states, census.held_bytes), (0, 0, before.held_bytes));
        assert_eq!((census.owners, census.files), (0, 0));
    }
}

/// The count of bytes for ranges moves to the remaining stateid, and is freed with it.
#[test]
fn an_evicted_client_with_locks_under_two_opens_leaves_nothing_behind() {
    for closes in [false, true] {
        for (engine, person) in Person::both(engine) {
            let opens = two_opens(&engine, &person);
            let at = (person.sender(NOW, USER), &file(1));
            if closes {
                engine.close(at, &opens[0].0).unwrap();
                engine.unlock(at.0, &opens[1].1, (&file(1), FIRST)).unwrap();
            }
            engine.evict(NOW, &person.client);
            engine.tick(NOW);
            let census = engine.census();
            assert_eq!((census.locks, census.held_bytes, census.files), (0, 0, 0));
        }
    }
}

/// The remaining locks take as much memory as if they had been made under one open.
#[test]
fn ranges_count_for_the_open_that_is_left() {
    let [_, (engine, person)] = Person::both(engine);
    let [(first, _), _] = two_opens(&engine, &person);
    engine.close((person.sender(NOW, USER), &file(1)), &first).unwrap();
    let [_, (alone, person)] = Person::both(crate::people::engine);
    let open = open(&alone, &person, Wish { owner: b"p", ..PLAIN }).stateid;
    for (range, seqid) in [(FIRST, 1), (NEXT, 2)] {
        lock_by(&alone, &person, range, Locker::New { open, owner: b"l", seqid }).unwrap();
    }
    assert_eq!(engine.census(), alone.census());
}

#[test]
fn a_lock_stateid_that_is_freed_under_one_open_leaves_the_bytes_of_the_other() {
    let [_, (engine, person)] = Person::both(engine);
    let [(_, first), (_, second)] = two_opens(&engine, &person);
    let other = other(&engine);
    let sender = person.sender(NOW, USER);
    // The owner has locked bytes of the file, so that the stateid cannot be freed.
    assert_eq!(engine.free_stateid(sender, &first), Err(Error::LocksHeld));
    let first = engine.unlock(sender, &first, (&file(1), ByteRange::ALL)).unwrap();
    assert!(!is_locked(&engine, &other, ByteRange::ALL));
    engine.free_stateid(sender, &first).unwrap();
    lock_by(&engine, &person, FIRST, Locker::Known { lock: second }).unwrap();
    assert!(is_locked(&engine, &other, FIRST));
}
