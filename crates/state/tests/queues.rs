//! The locks of a file and their queue are rebuilt from their own reports, and compared with locks
//! that were not rebuilt.

use std::time::Duration;

use comity_state::{ByteRange, FileLocks, LockType, Offer};
use proptest::prelude::*;

const OWNERS: u64 = 4;
const OFFER: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_secs(45);

/// A request about the locks of a file.
#[derive(Debug, Clone, Copy)]
enum Request {
    Lock(Offer, bool),
    Unlock(Offer),
    Cancel(Offer),
    Forget(u64),
    Expire(u64),
}

fn request() -> impl Strategy<Value = Request> {
    let bytes = (0..8_u64, 0..8_u64);
    let wish = (0..OWNERS, bytes, any::<bool>()).prop_map(|(owner, (a, b), write)| {
        let range = ByteRange { first: a.min(b), last: a.max(b) };
        Offer { owner, range, kind: if write { LockType::Write } else { LockType::Read } }
    });
    prop_oneof![
        8 => (wish.clone(), any::<bool>()).prop_map(|(wish, wait)| Request::Lock(wish, wait)),
        4 => wish.clone().prop_map(Request::Unlock),
        1 => wish.prop_map(Request::Cancel),
        1 => (0..OWNERS).prop_map(Request::Forget),
        1 => (1..30_u64).prop_map(Request::Expire),
    ]
}

/// Does a request; returns whether a lock was refused, and the offers that were made.
fn perform(locks: &mut FileLocks, now: &mut Duration, request: Request) -> (bool, Vec<Offer>) {
    let (mut refused, mut offers) = (false, Vec::new());
    match request {
        Request::Lock(wish, wait) => {
            let until = wait.then_some(*now + WAIT);
            refused = locks.lock(*now, wish, until, &mut offers).is_err();
        }
        Request::Unlock(wish) => locks.unlock(*now, wish.owner, wish.range, &mut offers),
        Request::Cancel(wish) => locks.cancel(*now, wish, &mut offers),
        Request::Forget(owner) => locks.forget(*now, owner, &mut offers),
        Request::Expire(seconds) => {
            *now += Duration::from_secs(seconds);
            locks.expire(*now, &mut offers);
        }
    }
    (refused, offers)
}

fn rebuilt(locks: &FileLocks, now: Duration) -> FileLocks {
    let mut copy = FileLocks::new(OFFER);
    for owner in 0..OWNERS {
        for (range, kind) in locks.held_by(owner) {
            let held = copy.lock(now, Offer { owner, range, kind }, None, &mut Vec::new());
            assert_eq!(held, Ok(()));
        }
    }
    locks.queue().into_iter().for_each(|queued| copy.restore(queued));
    copy
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn rebuilt_locks_answer_the_same_and_make_the_same_offers(
        before in proptest::collection::vec(request(), 0..40),
        after in proptest::collection::vec(request(), 1..40),
    ) {
        let (mut locks, mut now) = (FileLocks::new(OFFER), Duration::ZERO);
        for request in before {
            perform(&mut locks, &mut now, request);
        }
        let (mut copy, mut copy_now) = (rebuilt(&locks, now), now);
        prop_assert_eq!(copy.queue(), locks.queue());
        prop_assert_eq!(copy.counts(), locks.counts());
        for request in after {
            let answers = [(&mut locks, &mut now), (&mut copy, &mut copy_now)]
                .map(|(locks, now)| perform(locks, now, request));
            prop_assert_eq!(&answers[0], &answers[1], "{:?}", request);
            prop_assert_eq!(copy.queue(), locks.queue());
        }
        prop_assert_eq!(copy.deadline(), locks.deadline());
    }
}
