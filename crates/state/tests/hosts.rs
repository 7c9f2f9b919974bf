//! The lock manager of NFSv3 in the engine: hosts, which have no leases.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    ByteRange, CallbackAddress, Caller, Claim, Client, ClientOwner, ClientProtocol, Delegation,
    DelegationWish, Effect, Engine, Error, FileKey, HostLock, Identity, LockRefusal,
    LockRequestKind, LockType, NoDelegation, Open, Origin, OriginChannel, Record, RecordedClient,
    Recovered, Setclientid, Settings, Share, StateDetails, Verifier,
};
use comity_vfs::Handle;

const NOW: Duration = Duration::from_secs(1);

fn engine() -> Engine {
    Engine::new(NOW, Settings::new(7, [7; 16]), Recovered::new())
}

fn file() -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[1]).unwrap() }
}

fn bytes(first: u64, last: u64) -> ByteRange {
    ByteRange { first, last }
}

fn write(owner: &[u8], range: ByteRange) -> HostLock<'_> {
    HostLock { owner, file: file(), range, kind: LockType::Write }
}

fn denied<T>(result: Result<T, LockRefusal>) -> bool {
    matches!(result, Err(LockRefusal::Denied { .. }))
}

fn host(engine: &Engine, name: &[u8]) -> Arc<Client> {
    engine.host(NOW, name, Origin::default()).unwrap()
}

/// The record of a host from before the restart.
fn known_before(name: &[u8]) -> Record {
    let host = RecordedClient {
        protocol: ClientProtocol::Nlm,
        channel: OriginChannel::Plain,
        id: name.into(),
    };
    let Caller { principal, origin } = Caller::default();
    Record::Client(host, Some(Identity { principal, origin, verifier: Verifier::default() }))
}

fn lock(engine: &Engine, host: &Arc<Client>, lock: &HostLock<'_>) -> Result<usize, LockRefusal> {
    engine.lock_host(NOW, host, lock, LockRequestKind::NonBlocking)
}

#[test]
fn two_hosts_exclude_each_other_and_owners_of_one_host_do_too() {
    let engine = engine();
    let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
    lock(&engine, &one, &write(b"p1", bytes(0, 9))).unwrap();
    assert!(denied(lock(&engine, &two, &write(b"p1", bytes(9, 20)))));
    assert!(denied(lock(&engine, &one, &write(b"p2", bytes(0, 0)))));
    assert!(denied(engine.test_host(NOW, &two, &write(b"p1", bytes(9, 20)))));
    lock(&engine, &two, &write(b"p1", bytes(10, 20))).unwrap();
    engine.unlock_host(NOW, &one, &write(b"p1", ByteRange::ALL)).unwrap();
    lock(&engine, &two, &write(b"p1", bytes(0, 9))).unwrap();
}

/// A lock that was taken for a waiting host, which held the lock `held` before.
fn granted(held: LockType) -> (Engine, [Arc<Client>; 2], HostLock<'static>) {
    let engine = engine();
    let [one, two] = [b"one", b"two"].map(|name| host(&engine, name));
    let wish = write(b"p", bytes(0, 9));
    lock(&engine, &one, &HostLock { kind: held, ..write(b"p", bytes(0, 4)) }).unwrap();
    lock(&engine, &two, &write(b"q", bytes(5, 9))).unwrap();
    assert!(denied(engine.lock_host(NOW, &one, &wish, LockRequestKind::Blocking)));
    engine.unlock_host(NOW, &two, &write(b"q", bytes(5, 9))).unwrap();
    engine.lock_host(NOW, &one, &wish, LockRequestKind::Offered).unwrap();
    (engine, [one, two], wish)
}

/// A cancelled wait leaves the locks that the owner had.
#[test]
fn a_withdrawn_grant_leaves_the_earlier_locks() {
    for cancels in [false, true] {
        let (engine, [one, two], wish) = granted(LockType::Read);
        match cancels {
            true => engine.cancel_host(NOW, &one, &wish),
            false => engine.withdraw_grant(NOW, &one, &wish),
        }
        let read = |range| HostLock { kind: LockType::Read, ..write(b"q", range) };
        lock(&engine, &two, &read(bytes(0, 9))).unwrap();
        assert!(denied(lock(&engine, &two, &write(b"q", bytes(4, 4)))));
        lock(&engine, &two, &write(b"q", bytes(5, 9))).unwrap();
        // The withdrawal has an effect only once.
        lock(&engine, &one, &read(bytes(0, 4))).unwrap();
        engine.cancel_host(NOW, &one, &wish);
        assert!(denied(lock(&engine, &two, &write(b"q", bytes(0, 0)))));
    }
}

/// The host's own call was answered before the grant arrived, or the host has acknowledged the
/// grant: it keeps the lock.
#[test]
fn a_grant_that_the_host_knows_of_is_not_withdrawn() {
    for asks in [false, true] {
        let (engine, [one, two], wish) = granted(LockType::Write);
        match asks {
            true => assert!(lock(&engine, &one, &wish).is_ok()),
            false => engine.grant_known(&one, &wish),
        }
        engine.withdraw_grant(NOW, &one, &wish);
        engine.cancel_host(NOW, &one, &wish);
        assert!(denied(lock(&engine, &two, &write(b"q", bytes(9, 9)))));
        engine.unlock_host(NOW, &one, &wish).unwrap();
        lock(&engine, &two, &write(b"q", bytes(0, 9))).unwrap();
    }
}

/// After the last unlock there is no owner, no state and no file.
#[test]
fn the_last_unlock_leaves_nothing_behind() {
    let engine = engine();
    let host = host(&engine, b"one");
    lock(&engine, &host, &write(b"p1", bytes(0, 9))).unwrap();
    assert!(denied(lock(&engine, &host, &write(b"p2", bytes(0, 9)))));
    engine.unlock_host(NOW, &host, &write(b"p1", ByteRange::ALL)).unwrap();
    let census = engine.census();
    assert_eq!((census.states, census.owners, census.files), (0, 0, 0));
}

#[test]
fn a_waiter_is_notified_when_it_is_next() {
    let engine = engine();
    let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
    lock(&engine, &one, &write(b"p1", bytes(0, 9))).unwrap();
    let wish = write(b"p2", bytes(5, 5));
    assert!(denied(engine.lock_host(NOW, &two, &wish, LockRequestKind::Blocking)));
    assert!(engine.poll_effect().is_none());
    engine.unlock_host(NOW, &one, &write(b"p1", bytes(0, 9))).unwrap();
    let Some(Effect::NotifyLock { client, owner, range, kind, .. }) = engine.poll_effect() else {
        panic!("no host is notified");
    };
    assert_eq!((client.owner(), &*owner), (&b"two"[..], &b"p2"[..]));
    assert_eq!((range, kind), (bytes(5, 5), LockType::Write));
    // The lock is reserved for the host whose turn it is.
    assert!(denied(lock(&engine, &one, &write(b"p1", bytes(5, 5)))));
    lock(&engine, &two, &wish).unwrap();
}

#[test]
fn a_cancelled_wait_is_over() {
    let engine = engine();
    let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
    lock(&engine, &one, &write(b"p", bytes(0, 9))).unwrap();
    let wish = write(b"p", bytes(5, 5));
    assert!(denied(engine.lock_host(NOW, &two, &wish, LockRequestKind::Blocking)));
    engine.cancel_host(NOW, &two, &wish);
    engine.unlock_host(NOW, &one, &write(b"p", bytes(0, 9))).unwrap();
    assert!(engine.poll_effect().is_none());
    engine.tick(NOW);
    assert_eq!(engine.census().files, 0);
}

/// Others are notified before it, and the notice to it is late: no host would free a lock that it
/// got this way.
#[test]
fn a_late_notice_gives_nothing_to_a_cancelled_waiter() {
    for cancels in [true, false] {
        let engine = engine();
        let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
        lock(&engine, &one, &write(b"p", bytes(0, 9))).unwrap();
        lock(&engine, &two, &write(b"p", bytes(20, 29))).unwrap();
        let wish = write(b"p", bytes(5, 5));
        assert!(denied(engine.lock_host(NOW, &two, &wish, LockRequestKind::Blocking)));
        engine.unlock_host(NOW, &one, &write(b"p", bytes(0, 9))).unwrap();
        assert!(engine.poll_effect().is_some());
        if cancels {
            engine.cancel_host(NOW, &two, &wish);
        } else {
            lock(&engine, &two, &wish).unwrap();
            engine.unlock_host(NOW, &two, &wish).unwrap();
        }
        assert!(engine.lock_host(NOW, &two, &wish, LockRequestKind::Offered).is_err());
        lock(&engine, &one, &write(b"p", bytes(0, 9))).unwrap();
    }
}

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// Lets minutes pass, in which each probe is answered or none is; returns the number of probes.
fn pass(engine: &Engine, now: &mut Duration, (minutes, answers): (u32, bool)) -> usize {
    let mut asked = 0;
    for _ in 0..minutes {
        *now += MINUTE;
        engine.tick(*now);
        while let Some(effect) = engine.poll_effect() {
            let Effect::Probe { client } = effect else { panic!("{effect:?}") };
            engine.host_answered(*now, &client, answers);
            asked += 1;
        }
    }
    asked
}

/// An engine and a host that has locked a file and answered a probe.
fn answering() -> (Engine, Arc<Client>, Duration) {
    let engine = engine();
    let host = host(&engine, b"one");
    lock(&engine, &host, &write(b"p", bytes(0, 9))).unwrap();
    let mut now = NOW;
    assert_eq!(pass(&engine, &mut now, (1, true)), 1);
    (engine, host, now)
}

/// Returns whether another host is denied the bytes that the first one has locked.
fn is_held(engine: &Engine, now: Duration) -> bool {
    let other = engine.host(now, b"two", Origin::default()).unwrap();
    denied(engine.test_host(now, &other, &write(b"p", bytes(0, 9))))
}

#[test]
fn a_silent_host_keeps_its_locks_as_long_as_it_answers() {
    let (engine, _, mut now) = answering();
    pass(&engine, &mut now, (3 * 24 * 60, true));
    assert!(is_held(&engine, now));
}

#[test]
fn a_host_that_stops_answering_loses_its_locks_to_others_after_five_minutes() {
    let (engine, host, mut now) = answering();
    assert_eq!(pass(&engine, &mut now, (4, false)), 4);
    assert!(is_held(&engine, now));
    pass(&engine, &mut now, (1, false));
    assert!(engine.known_host(now, b"three").is_none() && engine.census().locks == 1);
    assert!(!is_held(&engine, now), "somebody wants them");
    assert!(
        !Arc::ptr_eq(&engine.host(now, b"one", Origin::default()).unwrap(), &host),
        "the host was evicted"
    );
}

#[test]
fn a_host_that_does_not_answer_keeps_unwanted_locks_for_a_day() {
    let (engine, _, mut now) = answering();
    pass(&engine, &mut now, (24 * 60, false));
    assert_eq!(engine.census().locks, 1);
    pass(&engine, &mut now, (10, false));
    assert_eq!(engine.census().locks, 0);
}

#[test]
fn a_waiter_gets_the_lock_when_its_holder_has_ended() {
    let (engine, _, mut now) = answering();
    pass(&engine, &mut now, (4, false));
    let other = engine.host(now, b"two", Origin::default()).unwrap();
    let waits = engine.lock_host(now, &other, &write(b"p", bytes(0, 9)), LockRequestKind::Blocking);
    assert!(denied(waits));
    now += MINUTE;
    engine.tick(now);
    let effects = std::iter::from_fn(|| engine.poll_effect());
    let told = effects.filter(|effect| matches!(effect, Effect::NotifyLock { .. }));
    assert_eq!(told.count(), 1);
}

#[test]
fn a_call_of_a_host_counts_like_an_answer() {
    let (engine, _, mut now) = answering();
    pass(&engine, &mut now, (4, false));
    engine.known_host(now, b"one").unwrap();
    pass(&engine, &mut now, (4, false));
    assert!(is_held(&engine, now));
}

/// The host may be behind a firewall, or have no lock manager that takes calls.
#[test]
fn a_host_that_never_answered_keeps_its_locks_for_a_day() {
    let engine = engine();
    let host = engine.host(NOW, b"one", Origin::default()).unwrap();
    lock(&engine, &host, &write(b"p", bytes(0, 9))).unwrap();
    let mut now = NOW;
    pass(&engine, &mut now, (24 * 60 - 1, false));
    assert!(is_held(&engine, now));
    pass(&engine, &mut now, (1, false));
    assert!(!is_held(&engine, now) && now == NOW + DAY);
}

#[test]
fn a_host_has_one_probe_at_a_time_and_only_if_it_has_state() {
    let engine = engine();
    let _idle = engine.host(NOW, b"idle", Origin::default()).unwrap();
    let host = engine.host(NOW, b"one", Origin::default()).unwrap();
    lock(&engine, &host, &write(b"p", bytes(0, 9))).unwrap();
    (1..600).for_each(|second| engine.tick(NOW + Duration::from_secs(second)));
    assert!(
        matches!(engine.poll_effect(), Some(Effect::Probe { client }) if client.owner() == b"one")
    );
    assert!(engine.poll_effect().is_none());
}

#[test]
fn a_restarted_host_has_no_locks() {
    let engine = engine();
    let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
    lock(&engine, &one, &write(b"p", bytes(0, 9))).unwrap();
    assert!(denied(engine.lock_host(
        NOW,
        &two,
        &write(b"p", bytes(0, 9)),
        LockRequestKind::Blocking
    )));
    engine.forget_host(NOW, b"one");
    assert!(matches!(engine.poll_effect(), Some(Effect::NotifyLock { .. })));
    lock(&engine, &two, &write(b"p", bytes(0, 9))).unwrap();
}

/// A notice that is late or repeated must not free locks that the host has taken since.
#[test]
fn a_repeated_notice_of_a_restart_frees_nothing() {
    let engine = engine();
    let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
    let wish = write(b"p", bytes(0, 9));
    one.set_monitor_state(3);
    lock(&engine, &one, &wish).unwrap();
    engine.host_began_anew(NOW, b"one", 5);
    two.set_monitor_state(7);
    lock(&engine, &two, &wish).unwrap();
    engine.host_began_anew(NOW, b"two", 7);
    let one = host(&engine, b"one");
    assert!(denied(lock(&engine, &one, &wish)));
}

#[test]
fn grace_is_extended_while_clients_reclaim_up_to_a_limit() {
    let mut recovered = Recovered::new();
    recovered.apply(known_before(b"one"));
    let engine = Engine::new(NOW, Settings::new(8, [7; 16]), recovered);
    let one = host(&engine, b"one");
    let (grace, second) = (engine.settings().grace, Duration::from_secs(1));
    let reclaim =
        |now| engine.lock_host(now, &one, &write(b"p", bytes(0, 9)), LockRequestKind::Reclaim);
    let mut now = NOW + grace - second;
    while now < NOW + grace * 2 {
        reclaim(now).unwrap();
        engine.tick(now);
        assert!(engine.is_in_grace(), "{now:?}");
        now += second;
    }
    engine.tick(now);
    assert!(!engine.is_in_grace(), "others have waited long enough");
}

#[test]
fn grace_that_is_held_lasts_its_whole_time_afterwards() {
    let mut recovered = Recovered::new();
    recovered.apply(known_before(b"one"));
    let engine = Engine::new(NOW, Settings::new(8, [7; 16]), recovered);
    let one = host(&engine, b"one");
    let grace = engine.settings().grace;
    engine.hold_grace(true);
    let late = NOW + grace * 5;
    engine.tick(late);
    assert_eq!(engine.grace_left(late), grace, "as long at least");
    engine.restart_grace(late);
    engine.hold_grace(false);
    let last = late + grace - Duration::from_secs(1);
    engine.tick(last);
    let wish = write(b"p", bytes(0, 9));
    engine.lock_host(last, &one, &wish, LockRequestKind::Reclaim).unwrap();
    engine.tick(late + grace * 2);
    assert!(!engine.is_in_grace());
}

#[test]
fn only_hosts_and_clients_from_before_the_restart_may_reclaim() {
    let mut recovered = Recovered::new();
    recovered.apply(known_before(b"one"));
    let engine = Engine::new(NOW, Settings::new(8, [7; 16]), recovered);
    let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
    let wish = write(b"p", bytes(0, 9));
    let reclaim = |host| engine.lock_host(NOW, host, &wish, LockRequestKind::Reclaim);
    assert_eq!(lock(&engine, &one, &wish), Err(Error::Grace.into()));
    assert_eq!(reclaim(&two), Err(Error::ReclaimBad.into()));
    reclaim(&one).unwrap();
    let after = NOW + engine.settings().grace;
    engine.tick(after);
    assert!(!engine.is_in_grace());
    assert!(denied(engine.lock_host(after, &two, &wish, LockRequestKind::NonBlocking)));
    assert_eq!(reclaim(&two), Err(Error::NoGrace.into()));
}

/// Its server was told of a restart of another one, and so it reclaims all that it has.
#[test]
fn a_host_may_reclaim_what_it_holds_at_any_time() {
    let engine = engine();
    let one = host(&engine, b"one");
    let reclaim =
        |wish: &HostLock<'_>| engine.lock_host(NOW, &one, wish, LockRequestKind::Reclaim).map(drop);
    lock(&engine, &one, &write(b"p", bytes(0, 4))).unwrap();
    lock(&engine, &one, &write(b"p", bytes(5, 9))).unwrap();
    lock(&engine, &one, &HostLock { kind: LockType::Read, ..write(b"p", bytes(11, 12)) }).unwrap();
    let refused = Err(Error::NoGrace.into());
    assert_eq!(reclaim(&write(b"p", bytes(2, 9))), Ok(()));
    assert_eq!(reclaim(&write(b"p", bytes(9, 10))), refused, "nobody has locked byte 10");
    assert_eq!(reclaim(&write(b"p", bytes(9, 11))), refused, "nobody has locked byte 10");
    assert_eq!(reclaim(&write(b"p", bytes(10, 11))), refused, "nobody has locked byte 10");
    assert_eq!(reclaim(&write(b"p", bytes(11, 12))), refused, "it has a read lock there");
    assert_eq!(reclaim(&write(b"q", bytes(0, 1))), refused, "another owner has locked them");
    let (share, file) = (Share::access(Share::READ), file());
    engine.share_host(NOW, &one, (b"p", file), share, LockRequestKind::NonBlocking).unwrap();
    let reclaim =
        |share| engine.share_host(NOW, &one, (b"p", file), share, LockRequestKind::Reclaim);
    assert_eq!(reclaim(share), Ok(()));
    assert_eq!(reclaim(Share::access(Share::BOTH)), Err(Error::NoGrace));
}

/// The client is evicted by an administrator, or because it has restarted.
#[test]
fn a_client_evicted_in_grace_reclaims_nothing() {
    let mut recovered = Recovered::new();
    recovered.apply(known_before(b"one"));
    let engine = Engine::new(NOW, Settings::new(8, [7; 16]), recovered);
    let wish = write(b"p", bytes(0, 9));
    let reclaim = || {
        let one = host(&engine, b"one");
        let reclaimed = engine.lock_host(NOW, &one, &wish, LockRequestKind::Reclaim);
        (one, reclaimed)
    };
    let (one, reclaimed) = reclaim();
    reclaimed.unwrap();
    engine.evict(NOW, &one);
    assert_eq!(reclaim().1, Err(Error::ReclaimBad.into()));
}

#[test]
fn shares_conflict_as_their_deny_modes_say() {
    let engine = engine();
    let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
    let share = |host, access, deny| {
        engine.share_host(
            NOW,
            host,
            (b"o", file()),
            Share { access, deny },
            LockRequestKind::NonBlocking,
        )
    };
    share(&one, Share::READ, Share::WRITE).unwrap();
    assert_eq!(share(&two, Share::WRITE, 0), Err(Error::ShareDenied));
    share(&two, Share::READ, 0).unwrap();
    engine.unshare_host(NOW, &one, (b"o", file()));
    share(&two, Share::BOTH, 0).unwrap();
    engine.unshare_host(NOW, &two, (b"o", file()));
    assert_eq!(engine.census().states, 0);
}

/// A client of NFSv4.0 that can be called back, with the verifier `verifier`.
fn client(engine: &Engine, verifier: u8) -> Arc<Client> {
    let owner = ClientOwner { verifier: Verifier([verifier; 8]), id: b"four"[..].into() };
    let (caller, callback) = (Caller::default(), CallbackAddress::default());
    let args = Setclientid { owner, caller, callback };
    let known = engine.setclientid(NOW, args).unwrap();
    engine.setclientid_confirm(NOW, (known.clientid, known.confirm), caller).unwrap();
    let client = engine.client_of(known.clientid, caller).unwrap();
    engine.callbacks_work(&client);
    client
}

fn delegation(engine: &Engine, client: &Arc<Client>, access: u32) -> Delegation {
    let (share, claim, wish) = (Share::access(access), Claim::New, DelegationWish::NoPreference);
    let (owner, caller) = (&b"o"[..], Caller::default());
    let (user, grantee, empties) = (None, None, false);
    let open =
        Open { client, caller, owner, file: file(), share, claim, wish, user, grantee, empties };
    engine.open(NOW, &open).unwrap().delegation
}

/// The holder of a write delegation locks without asking the server, and so does that of a read
/// delegation for read locks.
#[test]
fn a_file_that_a_host_has_locked_is_not_delegated_to_others() {
    let contention = Delegation::Refused(NoDelegation::Contention);
    for (kind, access, granted) in [
        (LockType::Write, Share::READ, false),
        (LockType::Write, Share::BOTH, false),
        (LockType::Read, Share::BOTH, false),
        (LockType::Read, Share::READ, true),
    ] {
        let engine = engine();
        let host = host(&engine, b"one");
        let wish = HostLock { kind, ..write(b"p", bytes(0, 9)) };
        lock(&engine, &host, &wish).unwrap();
        let got = delegation(&engine, &client(&engine, 1), access);
        assert_eq!(got != contention, granted, "{kind:?} {access}: {got:?}");
    }
}

/// A waiter is about to get a lock, so that a delegation would be recalled at once.
#[test]
fn a_file_that_a_host_waits_for_is_not_delegated_to_others() {
    let engine = engine();
    let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
    lock(&engine, &one, &write(b"p", bytes(0, 9))).unwrap();
    assert!(denied(engine.lock_host(
        NOW,
        &two,
        &write(b"p", bytes(0, 9)),
        LockRequestKind::Blocking
    )));
    engine.unlock_host(NOW, &one, &write(b"p", bytes(0, 9))).unwrap();
    let got = delegation(&engine, &client(&engine, 1), Share::BOTH);
    assert_eq!(got, Delegation::Refused(NoDelegation::Contention));
    lock(&engine, &two, &write(b"p", bytes(0, 9))).unwrap();
}

/// The host has locked again before its notice arrived; its earlier locks are freed nevertheless.
#[test]
fn a_late_notice_frees_the_locks_from_before_the_restart() {
    let engine = engine();
    let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
    one.set_monitor_state(3);
    lock(&engine, &one, &write(b"before", bytes(0, 9))).unwrap();
    one.set_monitor_state(5);
    lock(&engine, &one, &write(b"since", bytes(20, 29))).unwrap();
    engine.host_began_anew(NOW, b"one", 5);
    lock(&engine, &two, &write(b"p", bytes(0, 9))).unwrap();
    assert!(denied(lock(&engine, &two, &write(b"p", bytes(20, 29)))));
}

/// Linux numbers its owners from one after each start, so that the first owner has the name of an
/// earlier one.
#[test]
fn an_owner_after_the_restart_has_no_locks_of_an_earlier_one_of_its_name() {
    let engine = engine();
    let (one, two) = (host(&engine, b"one"), host(&engine, b"two"));
    let other = FileKey { volume: 1, export: 1, handle: Handle::new(&[2]).unwrap() };
    one.set_monitor_state(3);
    lock(&engine, &one, &HostLock { file: other, ..write(b"1@one", bytes(0, 9)) }).unwrap();
    one.set_monitor_state(5);
    lock(&engine, &one, &write(b"1@one", bytes(20, 29))).unwrap();
    engine.host_began_anew(NOW, b"one", 5);
    lock(&engine, &two, &HostLock { file: other, ..write(b"p", bytes(0, 9)) }).unwrap();
    assert!(denied(lock(&engine, &two, &write(b"p", bytes(20, 29)))));
}

#[test]
fn a_repeated_share_has_its_last_modes() {
    let engine = engine();
    let host = host(&engine, b"one");
    for share in [Share { access: 1, deny: 0 }, Share { access: 3, deny: 2 }] {
        engine.share_host(NOW, &host, (b"o", file()), share, LockRequestKind::NonBlocking).unwrap();
        let states = engine.states_after(NOW, &host, (0, 9));
        assert_eq!(states[0].details, StateDetails::Open { owner: b"o"[..].into(), share });
    }
}

/// A client cannot reclaim state that it had lost earlier.
#[test]
fn a_restarted_client_may_reclaim_a_file_that_was_revoked_from_its_earlier_instance() {
    let mut settings = Settings::new(7, [7; 16]);
    settings.durable = true;
    let engine = Engine::new(NOW, settings, Recovered::new());
    let four = client(&engine, 1);
    assert!(matches!(delegation(&engine, &four, Share::BOTH), Delegation::Granted { .. }));
    let late = NOW + settings.lease * 2;
    assert!(engine.break_delegations(NOW, None, &file(), Share::access(Share::BOTH)).is_err());
    engine.renew(late, four.id(), Caller::default()).unwrap();
    engine.tick(late);
    assert_eq!(engine.delegated(&file()), None);
    client(&engine, 2);
    let mut records = Vec::new();
    engine.poll_records(&mut records);
    let mut recovered = Recovered::new();
    records.into_iter().for_each(|record| recovered.apply(record));
    let left: Vec<Record> = recovered.records().collect();
    assert!(matches!(&left[..], [Record::Client(..)]), "{left:?}");
}

/// A waiter knows the file by the export by which it asked.
#[test]
fn a_lock_that_is_freed_through_one_export_is_offered_by_the_other() {
    let engine = engine();
    let [one, two] =
        [b"one", b"two"].map(|name| engine.host(NOW, name, Origin::default()).unwrap());
    let by = |export| HostLock { file: FileKey { export, ..file() }, ..write(b"p", bytes(0, 9)) };
    lock(&engine, &one, &by(1)).unwrap();
    assert!(denied(engine.lock_host(NOW, &two, &by(2), LockRequestKind::Blocking)));
    engine.unlock_host(NOW, &one, &by(1)).unwrap();
    let Some(Effect::NotifyLock { client, file, .. }) = engine.poll_effect() else {
        panic!("the waiter is not notified")
    };
    assert_eq!((client.owner(), file.export), (&b"two"[..], 2));
}
