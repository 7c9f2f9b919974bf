//! Copies that continue after their reply: their number, their time, and what ends them.
#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    BeginOffload, Caller, ChannelAttrs, Claim, Client, ClientOwner, ConnectionId, CopyUnderWay,
    CreateSession, DelegationWish, Effect, Engine, Error, ExchangeId, FileKey, Limits, OffloadEnd,
    OffloadStatus, Open, Origin, Principal, Recovered, SequenceAnswer, SessionId, Settings, Share,
    Stateid, StatusFlags, Verifier,
};
use comity_vfs::Handle;

const NOW: Duration = Duration::from_secs(1);
const DONE: OffloadEnd = OffloadEnd { status: 0, verifier: Verifier([7; 8]) };

fn engine() -> Engine {
    let limits = Limits { offloads_per_client: 2, ..Limits::DEFAULT };
    Engine::new(NOW, Settings { limits, ..Settings::new(7, [7; 16]) }, Recovered::new())
}

fn client(engine: &Engine) -> Arc<Client> {
    let owner = ClientOwner { verifier: Verifier([1; 8]), id: b"one"[..].into() };
    let caller = Caller::default();
    let args = ExchangeId { owner, caller, update: false };
    let known = engine.exchange_id(NOW, args).unwrap();
    let attrs = ChannelAttrs {
        request_bytes_max: 1 << 20,
        response_bytes_max: 1 << 20,
        response_cached_bytes_max: 4096,
        operations_max: 16,
        requests_max: 4,
    };
    let session = CreateSession {
        clientid: known.clientid,
        sequenceid: known.sequenceid,
        caller,
        minor: 2,
        connection: ConnectionId(1),
        back_wanted: true,
        fore: attrs,
        back: attrs,
        program: 1,
        security: Box::default(),
    };
    let session = engine.create_session(NOW, &session).unwrap().session;
    Arc::clone(engine.session(&session).unwrap().client())
}

/// The user that asks for copies.
fn user() -> Caller {
    Caller { principal: Principal(1000), ..Caller::default() }
}

fn file() -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[1]).unwrap() }
}

fn begin(engine: &Engine, client: &Client, now: Duration) -> Result<Stateid, Error> {
    let (session, status) = (SessionId([1; 16]), StatusFlags::default());
    let (seqid, slot, highest_slot, target_highest_slot) = (1, 0, 3, 3);
    let asked_by =
        SequenceAnswer { session, seqid, slot, highest_slot, target_highest_slot, status };
    let wanted = BeginOffload { file: file(), principal: user().principal, asked_by };
    engine.begin_offload(now, client, wanted)
}

/// The notices of ended copies that are due now, with the bytes and the status of each.
fn said(engine: &Engine) -> Vec<(u64, u32)> {
    let effects = std::iter::from_fn(|| engine.poll_effect());
    let ends = effects.filter_map(|effect| match effect {
        Effect::Offload { copied, end, .. } => Some((copied, end.status)),
        _ => None,
    });
    ends.collect()
}

#[test]
fn a_running_copy_is_cancelled_after_its_current_piece() {
    let engine = engine();
    let client = client(&engine);
    let copy = begin(&engine, &client, NOW).unwrap();
    assert!(engine.begin_piece(NOW, &client, &copy));
    let cancel = || engine.cancel_offload((&client, &user()), &file(), &copy);
    assert_eq!(cancel(), Err(Error::Delay));
    assert_eq!(cancel(), Err(Error::Delay));
    engine.end_piece(NOW, &client, &copy, 5, None);
    assert!(!engine.begin_piece(NOW, &client, &copy), "no further piece");
    assert_eq!(cancel(), Ok(()));
    assert_eq!(cancel(), Err(Error::BadStateid));
    assert_eq!(said(&engine), []);
}

#[test]
fn a_copy_cancelled_during_its_last_piece_is_not_announced() {
    let engine = engine();
    let client = client(&engine);
    let copy = begin(&engine, &client, NOW).unwrap();
    assert!(engine.begin_piece(NOW, &client, &copy));
    assert_eq!(engine.cancel_offload((&client, &user()), &file(), &copy), Err(Error::Delay));
    engine.end_piece(NOW, &client, &copy, 5, Some(DONE));
    assert!(engine.offloads(NOW, &client).is_empty());
    assert_eq!(engine.cancel_offload((&client, &user()), &file(), &copy), Ok(()));
    assert_eq!(said(&engine), []);
}

/// Opens the target of the copies.
fn open(engine: &Engine, client: &Arc<Client>, caller: Caller) {
    engine.reclaim_complete(NOW, client, Caller::default()).unwrap();
    let open = Open {
        client,
        caller,
        owner: b"o",
        file: file(),
        share: Share::access(Share::WRITE),
        claim: Claim::New,
        wish: DelegationWish::None,
        user: None,
        grantee: None,
        empties: false,
    };
    engine.open(NOW, &open).unwrap();
}

const fn caller(principal: u64) -> Caller {
    Caller { principal: Principal(principal), origin: Origin::from_bytes([0; 16]) }
}

/// Linux requests a copy as the user of the program, and cancels it as the user that opened the
/// target. They differ if the program got the open file from another user.
#[test]
fn a_copy_is_cancelled_by_its_user_by_a_user_with_its_target_and_by_the_client() {
    let engine = engine();
    let client = client(&engine);
    open(&engine, &client, caller(1002));
    for (canceller, answer) in [
        (caller(1000), Ok(())),
        (caller(1001), Err(Error::BadStateid)),
        (caller(1002), Ok(())),
        (caller(0), Ok(())),
    ] {
        let copy = begin(&engine, &client, NOW).unwrap();
        let cancelled = engine.cancel_offload((&client, &canceller), &file(), &copy);
        assert_eq!(cancelled, answer, "{canceller:?}");
        let left = engine.offload_status(&client, &file(), &copy);
        assert_eq!(left.is_ok(), answer.is_err(), "{canceller:?}");
        engine.forget_offload(&client, &copy);
    }
}

#[test]
fn the_number_of_copies_of_a_client_is_limited() {
    let engine = engine();
    let client = client(&engine);
    let first = begin(&engine, &client, NOW).unwrap();
    begin(&engine, &client, NOW).unwrap();
    assert_eq!(begin(&engine, &client, NOW), Err(Error::Resource));
    engine.cancel_offload((&client, &user()), &file(), &first).unwrap();
    let third = begin(&engine, &client, NOW).unwrap();
    assert_ne!(first, third, "a stateid stands for one copy");
}

#[test]
fn an_unacknowledged_copy_makes_room_after_a_lease() {
    let engine = engine();
    let client = client(&engine);
    let lease = engine.settings().lease;
    for copied in [5, 6] {
        let copy = begin(&engine, &client, NOW).unwrap();
        assert!(engine.begin_piece(NOW, &client, &copy));
        engine.end_piece(NOW, &client, &copy, copied, Some(DONE));
    }
    assert_eq!(said(&engine), [(5, 0), (6, 0)]);
    assert_eq!(engine.offloads(NOW, &client).len(), 2, "both notices are to be repeated");
    assert_eq!(begin(&engine, &client, NOW + lease), Err(Error::Resource));
    let later = NOW + lease + Duration::from_secs(1);
    assert!(begin(&engine, &client, later).is_ok());
    assert!(engine.offloads(later, &client).is_empty(), "a notice about a forgotten copy");
}

#[test]
fn a_copy_cancelled_during_a_piece_makes_room_without_another_call() {
    let engine = engine();
    let client = client(&engine);
    for _ in 0..2 {
        let copy = begin(&engine, &client, NOW).unwrap();
        assert!(engine.begin_piece(NOW, &client, &copy));
        assert_eq!(engine.cancel_offload((&client, &user()), &file(), &copy), Err(Error::Delay));
        engine.end_piece(NOW, &client, &copy, 5, None);
    }
    let lease = engine.settings().lease;
    assert_eq!(begin(&engine, &client, NOW + lease), Err(Error::Resource));
    assert!(begin(&engine, &client, NOW + lease + Duration::from_secs(1)).is_ok());
}

#[test]
fn a_copy_ends_with_the_lease_of_its_client() {
    let engine = engine();
    let client = client(&engine);
    let copy = begin(&engine, &client, NOW).unwrap();
    let lease = engine.settings().lease;
    let last = NOW + lease - Duration::from_secs(1);
    assert!(engine.begin_piece(last, &client, &copy), "copying renews no lease");
    engine.end_piece(last, &client, &copy, 5, None);
    let status = engine.offload_status(&client, &file(), &copy);
    assert_eq!(status, Ok(OffloadStatus { copied: 5, end: None }));
    assert!(!engine.begin_piece(NOW + lease, &client, &copy));
    engine.end_piece(NOW + lease, &client, &copy, 9, Some(DONE));
    assert_eq!(said(&engine), []);
    let gone = engine.offload_status(&client, &file(), &copy);
    assert_eq!(gone, Err(Error::BadStateid));
}

#[test]
fn a_copy_from_before_a_restart_is_not_known() {
    let (before, engine) =
        (Engine::new(NOW, Settings::new(6, [7; 16]), Recovered::new()), engine());
    let copy = begin(&before, &client(&before), NOW).unwrap();
    let client = client(&engine);
    begin(&engine, &client, NOW).unwrap();
    let status = engine.offload_status(&client, &file(), &copy);
    assert_eq!(status, Err(Error::BadStateid));
    assert_eq!(engine.cancel_offload((&client, &user()), &file(), &copy), Err(Error::BadStateid));
}

#[test]
fn running_copies_are_listed_with_their_progress() {
    let engine = engine();
    let client = client(&engine);
    let (second, later) = (Duration::from_secs(1), NOW + Duration::from_secs(5));
    let first = begin(&engine, &client, NOW).unwrap();
    begin(&engine, &client, NOW + second).unwrap();
    assert!(engine.begin_piece(later, &client, &first));
    engine.end_piece(later, &client, &first, 5, None);
    let shown = |copied, age| CopyUnderWay { file: file(), copied, age };
    let both = [shown(5, 5 * second), shown(0, 4 * second)];
    assert_eq!(engine.copies(later, &client), both);
    engine.end_piece(later, &client, &first, 5, Some(DONE));
    assert_eq!(engine.copies(later, &client), both[1..]);
}
