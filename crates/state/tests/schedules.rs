//! Threads use the engine at the same time, and which thread runs next is chosen at random at each
//! lock and each shared number: `cargo test -p comity-state --features schedules`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_keys::{Algorithm, PublicKey};
use comity_state::{
    Always, ByteRange, Caller, ChannelAttrs, Claim, Client, ClientOwner, ConnectionId, Delegation,
    DelegationWish, Direction, DirectoryRequest, Engine, Error, ExchangeId, FileKey, GrantedAccess,
    Grantee, HostLock, Lock, LockRequestKind, LockType, Locker, NoDirectory, Open, Opened, Origin,
    Principal, Recovered, Result, Sender, Settings, Share, Stateid, Verifier,
};
use comity_vfs::{Cred, Gid, Handle, Uid};
use introduction::session_of;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::thread;

/// The number of schedules of each test. All together take some seconds.
const SCHEDULES: usize = 200;

const START: Duration = Duration::from_secs(1);
const LEASE: Duration = Duration::from_secs(90);
const READ: Share = Share::access(Share::READ);
const WRITE: Share = Share::access(Share::WRITE);
const NO_WISH: DelegationWish = DelegationWish::None;
const ALONE: Share = Share { access: Share::BOTH, deny: Share::BOTH };

/// Of two clients that open a file with a full deny mode, one gets it. The file is forgotten within
/// a second of its close, even if the other one looks for it at the same time.
#[test]
fn only_one_client_opens_a_file_with_a_full_deny_mode() {
    explore(|engine| {
        let people = [person(&engine, 1), person(&engine, 2)];
        let threads = people.map(|person| {
            let engine = Arc::clone(&engine);
            thread::spawn(move || {
                let opened = open(&engine, &person, 1, ALONE);
                let Ok(opened) = opened else {
                    assert_eq!(opened, Err(Error::ShareDenied));
                    return;
                };
                engine.close((sender(&person), &key(1)), &opened.stateid).unwrap();
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        engine.tick(START);
        assert_eq!((engine.census().files, engine.census().states), (0, 0));
        let third = person(&engine, 3);
        let opened = open(&engine, &third, 1, ALONE).unwrap();
        engine.close((sender(&third), &key(1)), &opened.stateid).unwrap();
        assert_eq!((engine.census().files, engine.census().states), (0, 0));
    });
}

/// While one client closes a file, another opens it, and a third one conflicts with the second's
/// share.
#[test]
fn a_share_is_not_lost_while_another_one_is_closed() {
    explore(|engine| {
        let (one, two) = (person(&engine, 1), person(&engine, 2));
        // A delegation would keep the file.
        let plain =
            |person, share| open_wishing(&engine, START, person, (1, share), DelegationWish::None);
        let first = plain(&one, READ).unwrap();
        let closing = {
            let (engine, one) = (Arc::clone(&engine), Arc::clone(&one));
            thread::spawn(move || engine.close((sender(&one), &key(1)), &first.stateid).map(|_| ()))
        };
        let denies = Share { access: Share::READ, deny: Share::WRITE };
        plain(&two, denies).unwrap();
        closing.join().unwrap().unwrap();
        let third = person(&engine, 3);
        assert_eq!(plain(&third, WRITE), Err(Error::ShareDenied));
    });
}

/// Different clients open, lock and close different files.
#[test]
fn clients_with_different_files_do_not_conflict() {
    explore(|engine| {
        let threads = [1_u8, 2, 3].map(|number| {
            let (engine, person) = (Arc::clone(&engine), person(&engine, number));
            thread::spawn(move || {
                let opened = open(&engine, &person, number, ALONE).unwrap();
                lock(&engine, &person, (&opened, number)).unwrap();
                engine.close((sender(&person), &key(number)), &opened.stateid).unwrap();
            })
        });
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!((engine.census().files, engine.census().states), (0, 0));
    });
}

/// A directory is changed while a client asks for it: the change is made before the client has the
/// delegation, or waits until it is returned. No client keeps an old listing under a delegation.
#[test]
fn a_directory_is_not_delegated_across_a_change() {
    explore(|engine| {
        let holder = person(&engine, 1);
        let listing = Arc::new(AtomicUsize::new(0));
        let changing = {
            let (engine, listing) = (Arc::clone(&engine), Arc::clone(&listing));
            thread::spawn(move || {
                let under_way = engine.changes_under_way(&key(1));
                under_way.fetch_add(1, Ordering::SeqCst);
                let cleared = !engine.has_delegations()
                    || engine.break_delegations(START, None, &key(1), WRITE).is_ok();
                if cleared {
                    // The change takes as long as a grant, so that the grant may fall into it.
                    (0..50).for_each(|_| assert_eq!(listing.load(Ordering::SeqCst), 0));
                    listing.store(1, Ordering::SeqCst);
                }
                under_way.fetch_sub(1, Ordering::SeqCst);
                cleared
            })
        };
        let user = Arc::new(Cred::new(Uid::new(1), Gid::new(1)));
        let request = DirectoryRequest {
            client: &holder,
            caller: holder.caller(),
            directory: key(1),
            parent: key(2),
            user: &user,
            policy: &Always,
            notices: None,
        };
        let granted = engine.delegate_directory(START, &request);
        let seen = listing.load(Ordering::SeqCst);
        let changed = changing.join().unwrap();
        if let Ok(stateid) = granted {
            assert_eq!(usize::from(changed), seen, "the holder has not heard of the change");
            engine.delegreturn((sender(&holder), &key(1)), &stateid).unwrap();
        } else {
            assert_eq!((granted, changed), (Err(NoDirectory::Contention), true));
        }
        engine.tick(START);
        assert_eq!((engine.census().states, engine.census().delegations), (0, 0));
    });
}

/// A delegation is returned while it is recalled: a client that waits gets the file, and nothing of
/// the delegation stays behind.
#[test]
fn a_recall_and_a_return_may_cross() {
    explore(|engine| {
        let (holder, other) = (person(&engine, 1), person(&engine, 2));
        let opened = open(&engine, &holder, 1, WRITE).unwrap();
        let Delegation::Granted { stateid, .. } = opened.delegation else { panic!("{opened:?}") };
        let returning = {
            let (engine, holder) = (Arc::clone(&engine), Arc::clone(&holder));
            thread::spawn(move || {
                engine.delegreturn((sender(&holder), &key(1)), &stateid).unwrap();
            })
        };
        let first = open(&engine, &other, 1, READ);
        assert!(matches!(first, Ok(_) | Err(Error::Delay)), "{first:?}");
        returning.join().unwrap();
        open(&engine, &other, 1, READ).unwrap();
        assert!(engine.recalls(&holder).is_empty());
        assert_eq!(engine.census().delegations, usize::from(is_delegated(&first)));
    });
}

/// A right ends while its client locks and closes the file: other clients can have it at once, and
/// the client is told, or has closed it before.
#[test]
fn a_right_may_end_while_its_client_closes() {
    explore(|engine| {
        let (holder, other) = (person(&engine, 1), person(&engine, 2));
        let by = grantee();
        let opened = open_by(&engine, &holder, &by);
        let ending = {
            let (engine, holder) = (Arc::clone(&engine), Arc::clone(&holder));
            thread::spawn(move || {
                engine.end_rights(START, &holder, (&key(1), &by), GrantedAccess::default())
            })
        };
        let locked = lock(&engine, &holder, (&opened, 1));
        let closed = engine.close((sender(&holder), &key(1)), &opened.stateid);
        let ended = ending.join().unwrap();
        assert!(closed.is_ok() || closed == Err(Error::AdminRevoked), "{closed:?}");
        assert!(closed.is_ok() || ended > 0);
        open(&engine, &other, 1, ALONE).unwrap();
        assert_eq!(engine.census().locks, 0);
        let known = locked.iter().chain([&opened.stateid]);
        let revoked = |stateid: &&Stateid| {
            engine.test_stateid(sender(&holder), stateid) == Err(Error::AdminRevoked)
        };
        let revoked: Vec<_> = known.filter(revoked).collect();
        assert_eq!(revoked.len(), ended);
        revoked.into_iter().for_each(|it| engine.free_stateid(sender(&holder), it).unwrap());
        assert_eq!(engine.census().opens, 1);
        assert!(engine.grantee_clients().is_empty());
    });
}

/// Two clients open a file whose delegation has expired: it is revoked once.
#[test]
fn a_delegation_is_revoked_once() {
    explore(|engine| {
        let holder = person(&engine, 1);
        open(&engine, &holder, 1, WRITE).unwrap();
        let asking = person(&engine, 2);
        assert_eq!(open(&engine, &asking, 1, READ), Err(Error::Delay));
        let late = START + LEASE * 2;
        [&holder, &asking].iter().for_each(|person| renew(&engine, person, late));
        let ticking = {
            let engine = Arc::clone(&engine);
            thread::spawn(move || engine.tick(late))
        };
        engine.tick(late);
        ticking.join().unwrap();
        assert_eq!(engine.census().delegations, 0);
        open_at(&engine, late, &asking, 1, READ).unwrap();
    });
}

/// A client whose lease has expired calls again while another wants its state: one of the two has
/// the state.
#[test]
fn a_late_client_keeps_all_of_its_state_or_none() {
    explore(|engine| {
        let (late, other) = (person(&engine, 1), person(&engine, 2));
        let opened = open(&engine, &late, 1, ALONE).unwrap();
        let now = START + LEASE;
        renew(&engine, &other, now);
        let speaking = {
            let (engine, late) = (Arc::clone(&engine), Arc::clone(&late));
            thread::spawn(move || renew(&engine, &late, now))
        };
        let taken = open_at(&engine, now, &other, 1, ALONE);
        speaking.join().unwrap();
        let sender = Sender { now, ..sender(&late) };
        let keeps = engine.test_stateid(sender, &opened.stateid).is_ok();
        assert_ne!(taken.is_ok(), keeps, "{taken:?}");
    });
}

/// Expired clients are evicted one after the other while memory is short; a client that calls
/// before its eviction renews its lease and stays.
#[test]
fn a_client_that_renews_in_time_is_not_evicted_for_memory() {
    let mut settings = Settings::new(1, [7; 16]);
    settings.limits.held_bytes = 16_000;
    explore_with(settings, |engine| {
        let people = [1, 2, 3, 4].map(|number| person(&engine, number));
        for person in &people {
            let mut files = 1..=u8::MAX;
            let none = DelegationWish::None;
            let open = |file| open_wishing(&engine, START, person, (file, READ), none).is_ok();
            while files.next().is_some_and(open) {}
        }
        let [late, others @ .., first] = &people;
        let second = Duration::from_secs(1);
        renew(&engine, late, START + second);
        others.iter().for_each(|other| renew(&engine, other, START + 2 * second));
        let now = START + 2 * second + LEASE;
        let speaking = {
            let (engine, late, first) = (Arc::clone(&engine), Arc::clone(late), Arc::clone(first));
            thread::spawn(move || {
                while !first.sessions().is_empty() {
                    thread::yield_now();
                }
                renew(&engine, &late, now);
                late.renewed() == now && engine.totals().clients_evicted == 0
            })
        };
        engine.tick(now);
        let in_time = speaking.join().unwrap();
        assert!(!in_time || engine.client_by_id(late.id()).is_some(), "it has a lease");
    });
}

/// An NLM host locks a file while it is delegated: either the host is refused, or the delegation
/// is.
#[test]
fn a_file_is_not_locked_by_a_host_and_delegated_at_once() {
    explore(|engine| {
        let (one, host) =
            (person(&engine, 1), engine.host(START, b"host", Origin::default()).unwrap());
        let locking = {
            let engine = Arc::clone(&engine);
            thread::spawn(move || {
                let (range, kind) = (ByteRange::ALL, LockType::Write);
                let wish = HostLock { owner: b"owner", file: key(1), range, kind };
                engine.lock_host(START, &host, &wish, LockRequestKind::NonBlocking).is_ok()
            })
        };
        let delegated = is_delegated(&open(&engine, &one, 1, READ));
        let locked = locking.join().unwrap();
        assert!(!(locked && delegated), "both may lock");
    });
}

/// An unlock gives the lock to one of two waiters.
#[test]
fn a_freed_lock_is_given_to_one_waiter() {
    explore(|engine| {
        let people = [person(&engine, 1), person(&engine, 2), person(&engine, 3)];
        let opened = people.each_ref().map(|person| {
            let share = Share::access(Share::BOTH);
            open_wishing(&engine, START, person, (1, share), DelegationWish::None).unwrap()
        });
        let held = lock(&engine, &people[0], (&opened[0], 1)).unwrap();
        let waiting = [1, 2].map(|number: usize| {
            let (engine, person) = (Arc::clone(&engine), Arc::clone(&people[number]));
            let opened = opened[number];
            thread::spawn(move || lock(&engine, &person, (&opened, 1)).is_ok())
        });
        let range = ByteRange { first: 0, last: 0 };
        engine.unlock(sender(&people[0]), &held, (&key(1), range)).unwrap();
        let got = waiting.map(|thread| thread.join().unwrap());
        assert_ne!(got, [true, true], "two clients have the lock");
        let again = [1, 2].map(|number: usize| {
            got[number - 1] || lock(&engine, &people[number], (&opened[number], 1)).is_ok()
        });
        assert_eq!(again.iter().filter(|has| **has).count(), 1, "{got:?} {again:?}");
    });
}

fn explore(scene: impl Fn(Arc<Engine>) + Send + Sync + 'static) {
    explore_with(Settings::new(1, [7; 16]), scene);
}

fn explore_with(settings: Settings, scene: impl Fn(Arc<Engine>) + Send + Sync + 'static) {
    let run = move || {
        let engine = Engine::new(START, settings, Recovered::new());
        scene(Arc::new(engine));
    };
    shuttle::check_random(run, SCHEDULES);
}

const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 4096,
    response_bytes_max: 4096,
    response_cached_bytes_max: 1024,
    operations_max: 16,
    requests_max: 1,
};

/// A client with a session and a back channel.
fn person(engine: &Engine, number: u8) -> Arc<Client> {
    let owner = ClientOwner { verifier: Verifier([number; 8]), id: [number].into() };
    let caller = caller(number);
    let args = ExchangeId { owner, caller, update: false };
    let known = engine.exchange_id(START, args).unwrap();
    let session = session_of(&known, (caller, number.into()), ATTRS);
    let session = engine.create_session(START, &session).unwrap().session;
    let client = Arc::clone(engine.session(&session).unwrap().client());
    engine.callbacks_work(&client);
    engine.reclaim_complete(START, &client, caller).unwrap();
    client
}

/// Renews the lease, as a SEQUENCE does; ignores the error of a client that was evicted.
fn renew(engine: &Engine, client: &Arc<Client>, now: Duration) {
    let Some(session) = client.sessions().first().copied() else { return };
    let connection = (ConnectionId(client.id().number().into()), Direction::Both);
    let _ = engine.bind_connection(now, &session, connection, caller_of(client));
}

fn open(engine: &Engine, client: &Arc<Client>, file: u8, share: Share) -> Result<Opened> {
    open_at(engine, START, client, file, share)
}

fn open_at(
    engine: &Engine,
    now: Duration,
    client: &Arc<Client>,
    file: u8,
    share: Share,
) -> Result<Opened> {
    open_wishing(engine, now, client, (file, share), DelegationWish::NoPreference)
}

fn open_wishing(
    engine: &Engine,
    now: Duration,
    client: &Arc<Client>,
    (file, share): (u8, Share),
    wish: DelegationWish,
) -> Result<Opened> {
    let (file, claim, owner, caller) = (key(file), Claim::New, b"owner", caller_of(client));
    let (user, grantee, empties) = (None, None, false);
    let asked = Open { client, caller, owner, file, share, claim, wish, user, grantee, empties };
    let opened = engine.open(now, &asked)?;
    if share.deny != 0
        && let Delegation::Granted { stateid, .. } = opened.delegation
    {
        engine.delegreturn((Sender { now, ..sender(client) }, &file), &stateid)?;
    }
    Ok(opened)
}

/// Opens the first file for reading and writing by grants, without a delegation.
fn open_by(engine: &Engine, client: &Arc<Client>, by: &Arc<Grantee>) -> Opened {
    let (file, share, claim, wish) = (key(1), Share::access(Share::BOTH), Claim::New, NO_WISH);
    let (owner, caller, user, grantee, empties) =
        (&b"owner"[..], caller_of(client), None, Some(by), false);
    let asked = Open { client, caller, owner, file, share, claim, wish, user, grantee, empties };
    engine.open(START, &asked).unwrap()
}

fn grantee() -> Arc<Grantee> {
    let key = PublicKey::from_raw(Algorithm::Ed25519, &[7; 32]).unwrap();
    Arc::new(Grantee { key, address: [10, 0, 0, 1].into(), export: 1, user: None })
}

/// Locks the first byte of a file for writing, or waits for it.
fn lock(
    engine: &Engine,
    client: &Arc<Client>,
    (opened, file): (&Opened, u8),
) -> std::result::Result<comity_state::Stateid, comity_state::LockRefusal> {
    let locker = Locker::New { open: opened.stateid, owner: b"locker", seqid: 0 };
    let (range, kind) = (ByteRange { first: 0, last: 0 }, LockType::Write);
    let lock = Lock { file: key(file), range, kind, reclaim: false, wait: true, locker };
    engine.lock(sender(client), &lock)
}

fn sender(client: &Arc<Client>) -> Sender<'_> {
    Sender { now: START, client: Some(client), caller: caller_of(client) }
}

/// Each client has an address of its own.
fn caller(number: u8) -> Caller {
    Caller { principal: Principal::default(), origin: Origin::from_bytes([number; 16]) }
}

fn caller_of(client: &Client) -> Caller {
    caller(client.owner()[0])
}

fn is_delegated(opened: &Result<Opened>) -> bool {
    opened.is_ok_and(|opened| matches!(opened.delegation, Delegation::Granted { .. }))
}

fn key(file: u8) -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[file]).unwrap() }
}
