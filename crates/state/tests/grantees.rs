//! State that rests on grants ends with them, leaves nothing behind, and migrates with its client.
#![allow(clippy::unwrap_used, clippy::panic)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_keys::{Algorithm, PublicKey};
use comity_state::{
    ByteRange, Caller, ChannelAttrs, Claim, Client, ClientOwner, Delegation, DelegationWish,
    Effect, Engine, Error, ExchangeId, FileKey, GrantedAccess, Grantee, LayoutIomode, Lock,
    LockType, Locker, Open, Opened, Recovered, Sender, Settings, Share, Stateid, Verifier,
};
use comity_vfs::Handle;
use introduction::session_of;

const NOW: Duration = Duration::from_secs(1000);
const NOTHING: GrantedAccess = GrantedAccess { read: false, execute: false, write: false };

const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 1 << 20,
    response_bytes_max: 1 << 20,
    response_cached_bytes_max: 4096,
    operations_max: 16,
    requests_max: 4,
};

fn engine() -> Engine {
    Engine::new(NOW, Settings::new(1, [7; 16]), Recovered::new())
}

fn client(engine: &Engine, name: &str) -> Arc<Client> {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: name.as_bytes().into() };
    let args = ExchangeId { owner, caller: Caller::default(), update: false };
    let known = engine.exchange_id(NOW, args).unwrap();
    let session = session_of(&known, (Caller::default(), 1), ATTRS);
    let session = engine.create_session(NOW, &session).unwrap().session;
    let client = Arc::clone(engine.session(&session).unwrap().client());
    engine.callbacks_work(&client);
    engine.reclaim_complete(NOW, &client, Caller::default()).unwrap();
    client
}

fn file(number: u8) -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[number]).unwrap() }
}

fn grantee(number: u8, export: u32) -> Arc<Grantee> {
    let key = PublicKey::from_raw(Algorithm::Ed25519, &[number; 32]).unwrap();
    Arc::new(Grantee { key, address: [10, 0, 0, number].into(), export, user: None })
}

fn opened(
    engine: &Engine,
    client: &Arc<Client>,
    (owner, number, access): (&str, u8, u32),
    by: Option<&Arc<Grantee>>,
) -> Opened {
    let open = Open {
        client,
        caller: Caller::default(),
        owner: owner.as_bytes(),
        file: file(number),
        share: Share::access(access),
        claim: Claim::New,
        wish: DelegationWish::NoPreference,
        user: None,
        grantee: by,
        empties: false,
    };
    engine.open(NOW, &open).unwrap()
}

fn lock(engine: &Engine, client: &Arc<Client>, open: Stateid, wish: (&str, u64)) -> Stateid {
    engine.lock(Sender::of(NOW, client), &wanted(open, wish, false)).unwrap()
}

fn wanted<'a>(open: Stateid, (owner, byte): (&'a str, u64), wait: bool) -> Lock<'a> {
    let (range, kind) = (ByteRange { first: byte, last: byte }, LockType::Write);
    let locker = Locker::New { open, owner: owner.as_bytes(), seqid: 1 };
    Lock { file: file(1), range, kind, reclaim: false, wait, locker }
}

fn end(engine: &Engine, client: &Arc<Client>, by: &Grantee, allowed: GrantedAccess) -> usize {
    engine.end_rights(NOW, client, (&file(1), by), allowed)
}

fn notified(engine: &Engine) -> Vec<String> {
    let owners = std::iter::from_fn(|| engine.poll_effect()).filter_map(|effect| match effect {
        Effect::NotifyLock { owner, .. } => Some(String::from_utf8_lossy(&owner).into_owned()),
        _ => None,
    });
    owners.collect()
}

#[test]
fn ended_state_that_was_freed_leaves_nothing_behind() {
    let engine = engine();
    let (one, by) = (client(&engine, "a"), grantee(1, 1));
    let before = engine.census();
    let open = opened(&engine, &one, ("o", 1, Share::BOTH), Some(&by));
    let Delegation::Granted { stateid: delegation, .. } = open.delegation else { panic!() };
    let held: Vec<_> = (0..20).map(|byte| lock(&engine, &one, open.stateid, ("l", byte))).collect();
    assert_eq!(end(&engine, &one, &by, NOTHING), 3);
    let sender = Sender::of(NOW, &one);
    for stateid in [open.stateid, delegation, held[0]] {
        assert_eq!(engine.test_stateid(sender, &stateid), Err(Error::AdminRevoked));
        engine.free_stateid(sender, &stateid).unwrap();
    }
    engine.tick(NOW);
    assert_eq!(engine.census(), before);
    assert!(engine.grantee_clients().is_empty());
}

#[test]
fn all_lock_stateids_of_an_owner_end_at_once() {
    let engine = engine();
    let (one, by) = (client(&engine, "a"), grantee(1, 1));
    let both = opened(&engine, &one, ("o", 1, Share::BOTH), Some(&by)).stateid;
    let write = opened(&engine, &one, ("p", 1, Share::WRITE), None).stateid;
    let first = lock(&engine, &one, both, ("l", 0));
    let second = lock(&engine, &one, write, ("l", 5));
    let other = lock(&engine, &one, write, ("m", 9));
    assert_eq!(end(&engine, &one, &by, NOTHING), 4, "with a delegation");
    let tested = |stateid| engine.test_stateid(Sender::of(NOW, &one), &stateid);
    assert_eq!([first, second].map(tested), [Err(Error::AdminRevoked); 2]);
    assert_eq!([write, other].map(tested), [Ok(()); 2]);
    assert_eq!(engine.census().locks, 1, "the locks of the owner are gone as a whole");
}

/// Waiting owners of the same client would otherwise be the next to get the bytes.
#[test]
fn locks_that_a_client_loses_are_not_offered_to_its_own_owners() {
    let engine = engine();
    let (one, two, by) = (client(&engine, "a"), client(&engine, "b"), grantee(1, 1));
    let mine = opened(&engine, &one, ("o", 1, Share::BOTH), Some(&by));
    if let Delegation::Granted { stateid, .. } = mine.delegation {
        engine.delegreturn((Sender::of(NOW, &one), &file(1)), &stateid).unwrap();
    }
    let theirs = opened(&engine, &two, ("p", 1, Share::BOTH), None).stateid;
    lock(&engine, &one, mine.stateid, ("l", 0));
    for (client, open, owner) in [(&one, mine.stateid, "own"), (&two, theirs, "other")] {
        let waits = engine.lock(Sender::of(NOW, client), &wanted(open, (owner, 0), true));
        assert!(waits.is_err());
    }
    end(&engine, &one, &by, NOTHING);
    assert_eq!(notified(&engine), ["other"]);
    engine.lock(Sender::of(NOW, &two), &wanted(theirs, ("other", 0), true)).unwrap();
}

/// The wait is under another open of the client, which its own ids allowed.
#[test]
fn an_owner_whose_open_remains_stays_in_the_queue() {
    let engine = engine();
    let (one, two, by) = (client(&engine, "a"), client(&engine, "b"), grantee(1, 1));
    let theirs = opened(&engine, &two, ("p", 1, Share::BOTH), None);
    if let Delegation::Granted { stateid, .. } = theirs.delegation {
        engine.delegreturn((Sender::of(NOW, &two), &file(1)), &stateid).unwrap();
    }
    opened(&engine, &one, ("o", 1, Share::READ), Some(&by));
    let own = opened(&engine, &one, ("q", 1, Share::WRITE), None).stateid;
    let held = lock(&engine, &two, theirs.stateid, ("l", 0));
    assert!(engine.lock(Sender::of(NOW, &one), &wanted(own, ("own", 0), true)).is_err());
    assert_eq!(end(&engine, &one, &by, NOTHING), 1);
    engine.unlock(Sender::of(NOW, &two), &held, (&file(1), ByteRange::ALL)).unwrap();
    assert_eq!(notified(&engine), ["own"]);
}

#[test]
fn state_ends_only_for_the_key_the_address_and_the_export_it_rests_on() {
    let engine = engine();
    let (one, by) = (client(&engine, "a"), grantee(1, 1));
    opened(&engine, &one, ("o", 1, Share::READ), Some(&by));
    let elsewhere = Grantee { address: [10, 0, 0, 9].into(), ..(*by).clone() };
    for other in [&*grantee(2, 1), &*grantee(1, 2), &elsewhere] {
        assert_eq!(end(&engine, &one, other, NOTHING), 0, "{other:?}");
    }
    let files: Vec<_> = engine.granted_files(&one).collect();
    assert_eq!(
        files,
        [(file(1), Arc::clone(&by)), (file(1), Arc::clone(&by))],
        "with a delegation"
    );
    assert_eq!(engine.grantee_clients().len(), 1);
    assert_eq!(end(&engine, &one, &by, NOTHING), 2);
}

/// If an OPEN rests on grants, the whole open rests on them, even after another OPEN that rests on
/// ids.
#[test]
fn an_open_rests_on_the_grants_of_its_last_open_that_used_any() {
    let engine = engine();
    let one = client(&engine, "a");
    let (first, second) = (grantee(1, 1), grantee(2, 1));
    let asked = ("o", 1, Share::READ);
    let stateid = opened(&engine, &one, asked, None).stateid;
    for by in [Some(&first), Some(&second), None] {
        assert_eq!(opened(&engine, &one, asked, by).stateid.other, stateid.other);
    }
    assert_eq!(end(&engine, &one, &first, NOTHING), 0);
    assert_eq!(end(&engine, &one, &second, NOTHING), 1);
    assert!(engine.grantee_clients().is_empty());
}

#[test]
fn a_listing_can_continue_after_listed_state_has_ended() {
    let engine = engine();
    let (one, by) = (client(&engine, "a"), grantee(1, 1));
    for number in 1..=3 {
        opened(&engine, &one, ("o", number, Share::WRITE), Some(&by));
    }
    let mut files = engine.granted_files(&one);
    assert_eq!(files.next().map(|(key, _)| key), Some(file(1)));
    engine.end_rights(NOW, &one, (&file(2), &by), NOTHING);
    engine.evict(NOW, &one);
    assert_eq!(files.next(), None);
}

#[test]
fn grants_of_a_state_migrate_with_its_client_even_when_they_have_ended() {
    let (from, to) = (engine(), engine());
    let (old, by) = (client(&from, "a"), grantee(1, 1));
    let ended = opened(&from, &old, ("o", 1, Share::WRITE), Some(&by)).stateid;
    end(&from, &old, &by, NOTHING);
    let open = opened(&from, &old, ("o", 2, Share::READ), Some(&by));
    assert!(matches!(open.delegation, Delegation::Granted { .. }));
    let new = to.import_client(NOW, &from.export_client(NOW, &old).unwrap()).unwrap();
    let tested = to.test_stateid(Sender::of(NOW, &new), &ended);
    assert_eq!(tested, Err(Error::AdminRevoked));
    assert_eq!(to.grantee_clients().len(), 1);
    assert_eq!(to.end_rights(NOW, &new, (&file(2), &by), NOTHING), 2);
}

#[test]
fn a_layout_for_writing_ends_with_the_right_to_write_and_is_fenced() {
    let engine = engine();
    let (one, by) = (client(&engine, "a"), grantee(1, 1));
    let open = opened(&engine, &one, ("o", 1, Share::WRITE), Some(&by)).stateid;
    opened(&engine, &one, ("p", 1, Share::READ), None);
    let get = |iomode| {
        let sender = Sender::of(NOW, &one);
        engine.layoutget((sender, &file(1)), &open, (iomode, ByteRange::ALL))
    };
    get(LayoutIomode::ReadWrite).unwrap();
    assert!(end(&engine, &one, &by, NOTHING) > 0);
    assert_eq!(engine.census().layouts, 0, "an open for reading is left, and does not suffice");
    assert_eq!(engine.poll_fence(), Some(file(1)));
}

/// The open that is left needs no more than what is allowed, so that no open ends.
#[test]
fn a_layout_for_writing_that_outlived_a_downgrade_ends_with_the_right_to_write() {
    let engine = engine();
    let (one, by) = (client(&engine, "a"), grantee(1, 1));
    let sender = Sender::of(NOW, &one);
    let reads = opened(&engine, &one, ("o", 1, Share::READ), Some(&by));
    let both = opened(&engine, &one, ("o", 1, Share::BOTH), Some(&by)).stateid;
    let wanted = (LayoutIomode::ReadWrite, ByteRange::ALL);
    engine.layoutget((sender, &file(1)), &both, wanted).unwrap();
    engine.open_downgrade((sender, &file(1)), &both, Share::access(Share::READ)).unwrap();
    if let Delegation::Granted { stateid, .. } = reads.delegation {
        engine.delegreturn((sender, &file(1)), &stateid).unwrap();
    }
    assert_eq!(end(&engine, &one, &by, GrantedAccess::ALL), 0);
    assert_eq!((engine.census().layouts, engine.poll_fence()), (1, None));
    assert_eq!(end(&engine, &one, &by, GrantedAccess { write: false, ..GrantedAccess::ALL }), 0);
    assert_eq!((engine.census().layouts, engine.poll_fence()), (0, Some(file(1))));
}

/// A client opens a program for reading to execute it, but reads a delegated file for all users.
#[test]
fn the_right_to_execute_keeps_an_open_for_reading_and_no_delegation() {
    let engine = engine();
    let (one, by) = (client(&engine, "a"), grantee(1, 1));
    let open = opened(&engine, &one, ("o", 1, Share::READ), Some(&by));
    let Delegation::Granted { stateid: delegation, .. } = open.delegation else { panic!() };
    assert_eq!(end(&engine, &one, &by, GrantedAccess { execute: true, ..NOTHING }), 1);
    let tested = |stateid| engine.test_stateid(Sender::of(NOW, &one), &stateid);
    assert_eq!(tested(open.stateid), Ok(()));
    assert_eq!(tested(delegation), Err(Error::AdminRevoked));
}
