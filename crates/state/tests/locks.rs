//! The structure of locks, compared with an array that has a cell for each byte and owner.

use std::time::Duration;

use comity_state::{ByteRange, FileLocks, LockType, Offer};
use proptest::prelude::*;

const CELLS: usize = 12;
const OWNERS: usize = 4;
const NOW: Duration = Duration::ZERO;

/// The last cell stands for all bytes up to the end of the file.
fn range(first: usize, last: usize) -> ByteRange {
    let byte = |cell: usize| if cell == CELLS - 1 { u64::MAX } else { cell as u64 };
    ByteRange { first: first as u64, last: byte(last) }
}

type Model = [[Option<LockType>; CELLS]; OWNERS];

fn may(
    model: &Model,
    owner: usize,
    cells: &std::ops::RangeInclusive<usize>,
    kind: LockType,
) -> bool {
    let stands_against = |held: LockType| held == LockType::Write || kind == LockType::Write;
    (0..OWNERS)
        .filter(|other| *other != owner)
        .all(|other| cells.clone().all(|cell| !model[other][cell].is_some_and(stands_against)))
}

/// Returns a row of the model as the smallest number of ranges.
fn pieces(row: &[Option<LockType>; CELLS]) -> Vec<(ByteRange, LockType)> {
    let mut pieces: Vec<(usize, usize, LockType)> = Vec::new();
    for (cell, held) in row.iter().enumerate() {
        match (held, pieces.last_mut()) {
            (Some(kind), Some((_, last, before))) if *last + 1 == cell && before == kind => {
                *last = cell;
            }
            (Some(kind), _) => pieces.push((cell, cell, *kind)),
            (None, _) => {}
        }
    }
    pieces.into_iter().map(|(first, last, kind)| (range(first, last), kind)).collect()
}

/// Returns the strongest lock of all owners on a cell.
fn united(model: &Model, cell: usize) -> Option<LockType> {
    model.iter().map(|row| row[cell]).max().flatten()
}

/// The locks of consecutive parts, cell by cell.
fn cells_of(parts: &[(ByteRange, Option<LockType>)]) -> Vec<Option<LockType>> {
    assert!(parts.windows(2).all(|two| two[0].0.last + 1 == two[1].0.first));
    let cell = |byte: u64| (byte as usize).min(CELLS - 1);
    let cells = |(part, kind): &(ByteRange, _)| {
        std::iter::repeat_n(*kind, cell(part.last) - cell(part.first) + 1)
    };
    parts.iter().flat_map(cells).collect()
}

#[derive(Debug, Clone)]
struct Step {
    owner: usize,
    first: usize,
    last: usize,
    what: Option<LockType>,
}

fn step() -> impl Strategy<Value = Step> {
    let what = prop_oneof![Just(None), Just(Some(LockType::Read)), Just(Some(LockType::Write))];
    (0..OWNERS, 0..CELLS, 0..CELLS, what).prop_map(|(owner, a, b, what)| Step {
        owner,
        first: a.min(b),
        last: a.max(b),
        what,
    })
}

proptest! {
    #[test]
    fn locks_are_those_of_the_model(steps in proptest::collection::vec(step(), 1..60)) {
        let (mut locks, mut model) = (FileLocks::new(Duration::from_secs(1)), Model::default());
        let mut offers = Vec::new();
        for Step { owner, first, last, what } in steps {
            let cells = first..=last;
            let number = owner as u64;
            match what {
                None => {
                    locks.unlock(NOW, number, range(first, last), &mut offers);
                    cells.for_each(|cell| model[owner][cell] = None);
                }
                Some(kind) => {
                    let wish = Offer { owner: number, range: range(first, last), kind };
                    let granted = locks.lock(NOW, wish, None, &mut offers).is_ok();
                    prop_assert_eq!(granted, may(&model, owner, &cells, kind));
                    if granted {
                        cells.for_each(|cell| model[owner][cell] = Some(kind));
                    }
                }
            }
            for (owner, row) in model.iter().enumerate() {
                prop_assert_eq!(locks.held_by(owner as u64).collect::<Vec<_>>(), pieces(row));
            }
            let united: Vec<_> = (first..=last).map(|cell| united(&model, cell)).collect();
            prop_assert_eq!(cells_of(&locks.united(range(first, last))), united);
        }
        prop_assert!(offers.is_empty());
    }

    /// An offered lock can be taken at once, and no owner waits for bytes that are free.
    #[test]
    fn an_offered_lock_can_be_taken_and_no_owner_waits_for_free_bytes(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut locks = FileLocks::new(Duration::from_secs(1));
        let mut waiting: Vec<Offer> = Vec::new();
        for Step { owner, first, last, what } in steps {
            let (owner, range) = (owner as u64, range(first, last));
            let mut offers = Vec::new();
            match what {
                None => locks.unlock(NOW, owner, range, &mut offers),
                Some(kind) => {
                    let wish = Offer { owner, range, kind };
                    match locks.lock(NOW, wish, Some(Duration::MAX), &mut offers) {
                        Ok(()) => waiting.retain(|waiter| *waiter != wish),
                        Err(_) if !waiting.contains(&wish) => waiting.push(wish),
                        Err(_) => {}
                    }
                }
            }
            let mut next = 0;
            while let Some(offer) = offers.get(next).copied() {
                prop_assert!(waiting.contains(&offer), "an owner that does not wait is offered it");
                waiting.retain(|waiter| *waiter != offer);
                let taken = locks.lock(NOW, offer, Some(Duration::MAX), &mut offers);
                prop_assert_eq!(taken, Ok(()), "an offered lock cannot be taken");
                next += 1;
            }
            if let Some(first) = waiting.first() {
                let Offer { owner, range, kind } = *first;
                prop_assert!(locks.test(owner, range, kind).is_some(), "waits for free bytes");
            }
        }
    }
}

fn lock(locks: &mut FileLocks, owner: u64, kind: LockType, wait: bool) -> (bool, Vec<u64>) {
    let (range, mut offers) = (ByteRange::ALL, Vec::new());
    let until = wait.then_some(Duration::MAX);
    let granted = locks.lock(NOW, Offer { owner, range, kind }, until, &mut offers).is_ok();
    (granted, offers.into_iter().map(|offer| offer.owner).collect())
}

fn unlock(locks: &mut FileLocks, owner: u64) -> Vec<u64> {
    let mut offers = Vec::new();
    locks.unlock(NOW, owner, ByteRange::ALL, &mut offers);
    offers.into_iter().map(|offer| offer.owner).collect()
}

#[test]
fn waiters_are_served_in_the_order_in_which_they_came() {
    let mut locks = FileLocks::new(Duration::from_secs(1));
    assert!(lock(&mut locks, 0, LockType::Write, false).0);
    for owner in 1..=3 {
        assert!(!lock(&mut locks, owner, LockType::Write, true).0);
    }
    for owner in 0..3 {
        assert_eq!(unlock(&mut locks, owner), [owner + 1]);
        assert!(lock(&mut locks, owner + 1, LockType::Write, true).0);
    }
}

#[test]
fn a_series_of_readers_cannot_starve_a_writer() {
    let mut locks = FileLocks::new(Duration::from_secs(1));
    assert!(lock(&mut locks, 0, LockType::Read, false).0);
    assert!(!lock(&mut locks, 1, LockType::Write, true).0);
    for reader in 2..100 {
        assert!(!lock(&mut locks, reader, LockType::Read, reader % 2 == 0).0, "{reader} overtook");
    }
    assert_eq!(unlock(&mut locks, 0), [1]);
    assert!(lock(&mut locks, 1, LockType::Write, true).0);
    assert_eq!(unlock(&mut locks, 1).len(), 49, "all readers that wait are served together");
}

#[test]
fn a_lock_that_is_not_taken_is_offered_to_the_next_owner() {
    let mut locks = FileLocks::new(Duration::from_secs(1));
    assert!(lock(&mut locks, 0, LockType::Write, false).0);
    lock(&mut locks, 1, LockType::Write, true);
    lock(&mut locks, 2, LockType::Write, true);
    assert_eq!(unlock(&mut locks, 0), [1]);
    assert!(!lock(&mut locks, 3, LockType::Write, false).0, "others get a lock that is offered");
    assert_eq!(locks.deadline(), Some(Duration::from_secs(1)));
    let mut offers = Vec::new();
    locks.expire(Duration::from_secs(1), &mut offers);
    assert_eq!(offers.iter().map(|offer| offer.owner).collect::<Vec<_>>(), [2]);
}

#[test]
fn a_polling_waiter_keeps_its_place() {
    let mut locks = FileLocks::new(Duration::from_secs(9));
    assert!(lock(&mut locks, 0, LockType::Write, false).0);
    let poll = |locks: &mut FileLocks, owner, now: u64| {
        let wish = Offer { owner, range: ByteRange::ALL, kind: LockType::Write };
        let (now, until) = (Duration::from_secs(now), Duration::from_secs(now + 5));
        assert!(locks.lock(now, wish, Some(until), &mut Vec::new()).is_err());
    };
    poll(&mut locks, 1, 0);
    poll(&mut locks, 2, 1);
    poll(&mut locks, 1, 4);
    locks.expire(Duration::from_secs(6), &mut Vec::new());
    assert_eq!(unlock(&mut locks, 0), [1]);
    locks.forget(Duration::from_secs(6), 1, &mut Vec::new());
    assert!(locks.is_empty(), "the second owner stopped polling and is not forgotten");
}

/// Passes the lock along a queue, of which the former holder becomes the last; returns the time
/// that it took.
fn hand_on(waiters: u64, times: u64) -> Duration {
    let mut locks = FileLocks::new(Duration::from_secs(1));
    assert!(lock(&mut locks, 0, LockType::Write, false).0);
    for waiter in 1..=waiters {
        assert!(!lock(&mut locks, waiter, LockType::Write, true).0);
    }
    let begun = std::time::Instant::now();
    for time in 0..times {
        let (holder, next) = (time % (waiters + 1), (time + 1) % (waiters + 1));
        assert_eq!(unlock(&mut locks, holder), [next]);
        assert!(lock(&mut locks, next, LockType::Write, true).0);
        assert!(!lock(&mut locks, holder, LockType::Write, true).0);
    }
    begun.elapsed()
}

#[test]
fn passing_a_lock_takes_the_same_time_in_a_long_queue_as_in_a_short_one() {
    let least = |waiters| (0..3).map(|_| hand_on(waiters, 500)).min().unwrap_or_default();
    let (short, long) = (least(20), least(20_000));
    assert!(long < short * 20, "{long:?} in a line 1000 times as long as one of {short:?}");
}

/// Owners that leave the queue at the same time may be next to each other in it.
#[test]
fn owners_that_leave_the_queue_together_let_the_others_have_the_lock() {
    let mut locks = FileLocks::new(NOW);
    let wish = |owner, range| Offer { owner, range, kind: LockType::Write };
    locks.lock(NOW, wish(1, range(0, 0)), None, &mut Vec::new()).unwrap();
    for waiting in [wish(2, range(0, 9)), wish(3, range(5, 9)), wish(4, range(7, 8))] {
        let until = Some(Duration::from_secs(60));
        assert!(locks.lock(NOW, waiting, until, &mut Vec::new()).is_err());
    }
    let mut offers = Vec::new();
    locks.withdraw(NOW, |wish| wish.owner == 2 || wish.owner == 3, &mut offers);
    assert_eq!(offers, [wish(4, range(7, 8))]);
    assert_eq!(locks.counts(), (1, 1));
}
