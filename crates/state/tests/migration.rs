//! Clients migrate from one engine to another with all their state.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod introduction;

use std::sync::Arc;
use std::time::Duration;

use comity_state::{
    Always, ByteRange, CallbackAddress, Caller, ChannelAttrs, Claim, Client, ClientOwner,
    ConnectionId, Delegation, DelegationWish, Effect, Engine, Error, ExchangeId, ExportedKind,
    FileKey, HostLock, Lock, LockRefusal, LockRequestKind, LockType, Locker, Open, Opened, Origin,
    Principal, Recovered, Sender, SeqidCheck, Sequence, Sequenced, SessionId, Setclientid,
    Settings, Share, Stateid, Verifier,
};
use comity_state::{DirectoryNotice, DirectoryRequest, NotedChange, NoticeWishes};
use comity_vfs::{Cred, Gid, Handle, Uid};
use introduction::session_of;

const NOW: Duration = Duration::from_secs(1000);
const WHOLE: ByteRange = ByteRange::ALL;

const ATTRS: ChannelAttrs = ChannelAttrs {
    request_bytes_max: 4096,
    response_bytes_max: 4096,
    response_cached_bytes_max: 1024,
    operations_max: 8,
    requests_max: 2,
};

fn engine(change: impl FnOnce(&mut Settings)) -> Engine {
    let mut settings = Settings::new(3, [7; 16]);
    change(&mut settings);
    Engine::new(NOW, settings, Recovered::new())
}

fn caller(machine: u8) -> Caller {
    Caller { principal: Principal(0), origin: Origin::from_bytes([machine; 16]) }
}

fn owner(name: &str) -> ClientOwner {
    ClientOwner { verifier: Verifier([1; 8]), id: name.as_bytes().into() }
}

fn file(number: u8) -> FileKey {
    FileKey { volume: 1, export: 1, handle: Handle::new(&[number]).unwrap() }
}

/// A client of minor version 1 with a session, on machine 1.
fn client(engine: &Engine, name: &str) -> (Arc<Client>, SessionId) {
    let args = ExchangeId { owner: owner(name), caller: caller(1), update: false };
    let known = engine.exchange_id(NOW, args).unwrap();
    let session = session_of(&known, (caller(1), 1), ATTRS);
    let session = engine.create_session(NOW, &session).unwrap().session;
    let client = Arc::clone(engine.session(&session).unwrap().client());
    engine.callbacks_work(&client);
    engine.reclaim_complete(NOW, &client, caller(1)).unwrap();
    (client, session)
}

/// A confirmed client of minor version 0, on machine 2.
fn old_client(engine: &Engine, name: &str) -> Arc<Client> {
    let callback = CallbackAddress { program: 1, ..CallbackAddress::default() };
    let args = Setclientid { owner: owner(name), caller: caller(2), callback };
    let made = engine.setclientid(NOW, args).unwrap();
    engine.setclientid_confirm(NOW, (made.clientid, made.confirm), caller(2)).unwrap();
    engine.client_of(made.clientid, caller(2)).unwrap()
}

fn open(
    engine: &Engine,
    client: &Arc<Client>,
    (number, share): (u8, Share),
    wish: DelegationWish,
) -> Result<Opened, Error> {
    let (file, caller, claim) = (file(number), client.caller(), Claim::New);
    let (owner, user, grantee, empties) = (&b"opener"[..], None, None, false);
    engine.open(
        NOW,
        &Open { client, caller, owner, file, share, claim, wish, user, grantee, empties },
    )
}

fn opened(engine: &Engine, client: &Arc<Client>, number: u8) -> Stateid {
    let share = Share::access(Share::BOTH);
    open(engine, client, (number, share), DelegationWish::None).unwrap().stateid
}

fn lock(open: Stateid, number: u8, kind: LockType) -> Lock<'static> {
    let locker = Locker::New { open, owner: b"locker", seqid: 1 };
    Lock { file: file(number), range: WHOLE, kind, reclaim: false, wait: false, locker }
}

fn take_to(from: &Engine, to: &Engine, client: &Arc<Client>) -> Result<Arc<Client>, Error> {
    to.import_client(NOW, &from.export_client(NOW, client).unwrap())
}

#[test]
fn stateids_can_be_used_after_the_migration() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let (old, _) = client(&from, "a");
    let open = opened(&from, &old, 1);
    let held = from.lock(Sender::of(NOW, &old), &lock(open, 1, LockType::Write)).unwrap();
    let new = take_to(&from, &to, &old).unwrap();
    assert_eq!(new.id(), old.id());
    for stateid in [open, held] {
        assert_eq!(to.test_stateid(Sender::of(NOW, &new), &stateid), Ok(()));
    }
    let (other, _) = client(&to, "b");
    let theirs = opened(&to, &other, 1);
    let refused = to.lock(Sender::of(NOW, &other), &lock(theirs, 1, LockType::Read));
    let Err(LockRefusal::Denied { client, owner, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((client, &*owner), (new.id(), &b"locker"[..]));
    to.unlock(Sender::of(NOW, &new), &held, (&file(1), WHOLE)).unwrap();
    to.close((Sender::of(NOW, &new), &file(1)), &open).unwrap();
    to.lock(Sender::of(NOW, &other), &lock(theirs, 1, LockType::Read)).unwrap();
}

#[test]
fn new_clients_and_states_get_other_numbers_than_imported_ones() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let (old, _) = client(&from, "a");
    let first = opened(&from, &old, 1);
    let new = take_to(&from, &to, &old).unwrap();
    // In both engines the first client would have the same number.
    let (other, _) = client(&to, "b");
    assert_ne!(other.id(), new.id());
    let second = opened(&to, &new, 2);
    assert_ne!(first.other, second.other);
    assert_eq!(to.test_stateid(Sender::of(NOW, &new), &first), Ok(()));
}

#[test]
fn a_clientid_that_the_first_engine_gave_out_is_not_given_to_another_client() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let (old, _) = client(&from, "a");
    let (gone, _) = client(&from, "gone");
    from.evict(NOW, &gone);
    take_to(&from, &to, &old).unwrap();
    for name in ["b", "c", "d"] {
        assert_ne!(client(&to, name).0.id(), gone.id());
    }
}

#[test]
fn a_retry_of_a_request_is_answered_from_the_migrated_slot() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let (old, session) = client(&from, "a");
    let request = Sequence {
        session,
        seqid: 1,
        slot: 0,
        highest_slot: 0,
        cache_this: true,
        operations: 2,
        request_bytes: 100,
        digest: 77,
        connection: ConnectionId(1),
        origin: caller(1).origin,
    };
    let Ok(Sequenced::New(ticket)) = from.sequence(NOW, &request) else { panic!("not new") };
    assert_eq!(from.export_client(NOW, &old), Err(Error::Delay), "it is under way");
    ticket.answered(Some(b"the answer"));
    take_to(&from, &to, &old).unwrap();
    let Ok(Sequenced::Again(reply)) = to.sequence(NOW, &request) else { panic!("done twice") };
    assert_eq!(&*reply, b"the answer");
    let false_retry = Sequence { digest: 78, ..request };
    assert_eq!(to.sequence(NOW, &false_retry).err(), Some(Error::SeqFalseRetry));
    let next = Sequence { seqid: 2, ..request };
    assert!(matches!(to.sequence(NOW, &next), Ok(Sequenced::New(_))));
}

#[test]
fn a_retry_of_an_owner_of_minor_version_0_is_answered_again() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let old = old_client(&from, "a");
    let turn = |engine: &Engine, client: &Arc<Client>, seqid| {
        engine.open_turn((NOW, caller(2)), client, b"opener", seqid)
    };
    let Ok(SeqidCheck::New(first)) = turn(&from, &old, 5) else { panic!("not new") };
    assert_eq!(from.export_client(NOW, &old), Err(Error::Delay), "it is under way");
    let open = opened(&from, &old, 1);
    first.answered(b"the answer", None);
    let new = take_to(&from, &to, &old).unwrap();
    let Ok(SeqidCheck::Again(reply)) = turn(&to, &new, 5) else { panic!("done twice") };
    assert_eq!(&*reply.result, b"the answer");
    let confirmed = to.open_confirm((Sender::of(NOW, &new), &file(1)), &open).unwrap();
    assert_eq!(confirmed.seqid, open.seqid + 1);
    assert_eq!(turn(&to, &new, 9).err(), Some(Error::BadSeqid));
}

#[test]
fn a_client_can_be_imported_once() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let (old, _) = client(&from, "a");
    opened(&from, &old, 1);
    take_to(&from, &to, &old).unwrap();
    let known = to.census();
    assert_eq!(take_to(&from, &to, &old).map(drop), Err(Error::ClidInuse));
    assert_eq!(to.census(), known);
    assert_eq!(take_to(&from, &from, &old).map(drop), Err(Error::ClidInuse));
}

#[test]
fn a_client_whose_name_is_in_use_cannot_be_imported() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let _other = client(&from, "first");
    let (old, _) = client(&from, "a");
    let (here, _) = client(&to, "a");
    assert_ne!(here.id(), old.id());
    let mut exported = from.export_client(NOW, &old).unwrap();
    exported.name.verifier = Verifier([9; 8]);
    assert_eq!(to.import_client(NOW, &exported).map(drop), Err(Error::ClidInuse));
}

#[test]
fn a_client_of_another_boot_and_secret_keeps_its_clientid_sessions_and_stateids() {
    let from = engine(|_| {});
    let (old, session) = client(&from, "a");
    let open = opened(&from, &old, 1);
    let held = from.lock(Sender::of(NOW, &old), &lock(open, 1, LockType::Write)).unwrap();
    let to = Engine::new(NOW, Settings::new(4, [8; 16]), Recovered::new());
    let new = take_to(&from, &to, &old).unwrap();
    assert_eq!((new.id(), new.sessions()), (old.id(), vec![session]));
    for stateid in [open, held] {
        assert_eq!(to.test_stateid(Sender::of(NOW, &new), &stateid), Ok(()));
    }
    // A refused lock names the client, which is found by its lock-owner.
    let (other, _) = client(&to, "b");
    let theirs = opened(&to, &other, 1);
    let refused = to.lock(Sender::of(NOW, &other), &lock(theirs, 1, LockType::Read));
    let Err(LockRefusal::Denied { client, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(client, new.id());
}

#[test]
fn the_clientid_of_an_imported_client_has_expired_when_the_client_is_gone() {
    let from = engine(|_| {});
    let old = old_client(&from, "a");
    let to = Engine::new(NOW, Settings::new(4, [8; 16]), Recovered::new());
    assert_eq!(to.renew(NOW, old.id(), caller(2)), Err(Error::StaleClientid), "it is unknown");
    let new = take_to(&from, &to, &old).unwrap();
    assert_eq!(to.renew(NOW, old.id(), caller(2)), Ok(()));
    to.evict(NOW, &new);
    assert_eq!(to.renew(NOW, old.id(), caller(2)), Err(Error::Expired));
}

#[test]
fn an_import_that_meets_a_conflict_changes_nothing() {
    let denied = Share { access: Share::BOTH, deny: Share::BOTH };
    for conflict in 0..3 {
        let (from, to) = (engine(|_| {}), engine(|_| {}));
        let _other = client(&from, "first");
        let (old, _) = client(&from, "a");
        // The import meets the conflict after it has imported other files.
        let _opens: Vec<_> = (1..5).map(|number| opened(&from, &old, number)).collect();
        let (here, _) = client(&to, "b");
        match conflict {
            0 => drop(open(&to, &here, (9, denied), DelegationWish::None).unwrap()),
            1 => {
                let open = opened(&to, &here, 9);
                to.lock(Sender::of(NOW, &here), &lock(open, 9, LockType::Write)).unwrap();
            }
            _ => {
                let share = Share::access(Share::READ);
                let got = open(&to, &here, (9, share), DelegationWish::Read).unwrap();
                assert!(matches!(got.delegation, Delegation::Granted { .. }));
            }
        }
        let mine = opened(&from, &old, 9);
        from.lock(Sender::of(NOW, &old), &lock(mine, 9, LockType::Write)).unwrap();
        let known = to.census();
        let refused = take_to(&from, &to, &old).map(drop);
        assert_eq!(refused, Err(Error::ReclaimConflict), "{conflict}");
        assert_eq!(to.census(), known, "{conflict}");
        // When the other client has ended, there is no conflict.
        to.evict(NOW, &here);
        take_to(&from, &to, &old).unwrap();
    }
}

#[test]
fn a_migrated_delegation_is_recalled_by_the_new_engine() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let (old, _) = client(&from, "a");
    let share = Share::access(Share::BOTH);
    let got = open(&from, &old, (1, share), DelegationWish::Write).unwrap();
    let Delegation::Granted { stateid, .. } = got.delegation else { panic!("{got:?}") };
    let new = take_to(&from, &to, &old).unwrap();
    assert!(to.has_delegations());
    let (other, _) = client(&to, "b");
    while to.poll_effect().is_some() {}
    let refused = open(&to, &other, (1, share), DelegationWish::None);
    assert_eq!(refused.map(drop), Err(Error::Delay));
    let Some(Effect::Recall { client, stateid: recalled, .. }) = to.poll_effect() else {
        panic!("no recall")
    };
    assert_eq!((client.id(), recalled), (new.id(), stateid));
    to.delegreturn((Sender::of(NOW, &new), &file(1)), &stateid).unwrap();
    open(&to, &other, (1, share), DelegationWish::None).unwrap();
    assert!(!to.has_delegations());
}

#[test]
fn migrated_deny_modes_apply_in_the_new_engine() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let (old, _) = client(&from, "a");
    let share = Share { access: Share::READ, deny: Share::WRITE };
    open(&from, &old, (1, share), DelegationWish::None).unwrap();
    let new = take_to(&from, &to, &old).unwrap();
    assert!(to.has_denies());
    let refused = to.check_denied(NOW, &[], (&file(1), Share::WRITE));
    assert_eq!(refused, Err(Error::ShareDenied));
    to.evict(NOW, &new);
    assert!(!to.has_denies());
}

#[test]
fn a_migrated_host_keeps_its_locks_and_shares() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let host = from.host(NOW, b"host", caller(5).origin).unwrap();
    let (owner, kind) = (&b"process"[..], LockType::Write);
    let wish = HostLock { owner, file: file(1), range: WHOLE, kind };
    from.lock_host(NOW, &host, &wish, LockRequestKind::NonBlocking).unwrap();
    let share = Share { access: Share::READ, deny: Share::WRITE };
    from.share_host(NOW, &host, (owner, file(2)), share, LockRequestKind::NonBlocking).unwrap();
    take_to(&from, &to, &host).unwrap();
    let new = to.known_host(NOW, b"host").unwrap();
    let other = to.host(NOW, b"other", caller(6).origin).unwrap();
    let refused = to.test_host(NOW, &other, &wish);
    assert!(matches!(refused, Err(LockRefusal::Denied { .. })), "{refused:?}");
    to.unlock_host(NOW, &new, &wish).unwrap();
    assert_eq!(to.test_host(NOW, &other, &wish), Ok(()));
    let write = Share::access(Share::WRITE);
    let refused = to.share_host(NOW, &other, (owner, file(2)), write, LockRequestKind::NonBlocking);
    assert_eq!(refused, Err(Error::ShareDenied));
    to.unshare_host(NOW, &new, (owner, file(2)));
    to.share_host(NOW, &other, (owner, file(2)), write, LockRequestKind::NonBlocking).unwrap();
}

#[test]
fn a_lease_is_not_renewed_by_the_migration() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let (old, _) = client(&from, "a");
    let later = NOW + Duration::from_secs(60);
    let exported = from.export_client(later, &old).unwrap();
    assert_eq!(exported.silent, Duration::from_secs(60));
    let new = to.import_client(later, &exported).unwrap();
    to.tick(NOW + Duration::from_secs(89));
    assert!(to.client_by_id(new.id()).is_some());
    // The client has no state, so that it is not kept after its lease.
    to.tick(NOW + Duration::from_secs(91));
    assert!(to.client_by_id(new.id()).is_none());
}

#[test]
fn an_expired_or_unconfirmed_client_is_not_exported() {
    let from = engine(|_| {});
    let (gone, _) = client(&from, "a");
    from.evict(NOW, &gone);
    assert_eq!(from.export_client(NOW, &gone), Err(Error::Expired));
    let args = ExchangeId { owner: owner("b"), caller: caller(1), update: false };
    let made = from.exchange_id(NOW, args).unwrap();
    let unconfirmed = from.client_by_id(made.clientid).unwrap();
    assert_eq!(from.export_client(NOW, &unconfirmed), Err(Error::StaleClientid));
}

#[test]
fn an_import_above_the_memory_limit_is_refused_as_a_whole() {
    let from = engine(|_| {});
    let to = engine(|settings| settings.limits.held_bytes = 4096);
    let (old, _) = client(&from, "a");
    let _opens: Vec<_> = (1..40).map(|number| opened(&from, &old, number)).collect();
    assert_eq!(take_to(&from, &to, &old).map(drop), Err(Error::Resource));
    assert_eq!(to.census(), comity_state::Census::default());
}

#[test]
fn an_imported_client_leaves_nothing_behind_at_its_end() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let (old, _) = client(&from, "a");
    let open_stateid = opened(&from, &old, 1);
    from.lock(Sender::of(NOW, &old), &lock(open_stateid, 1, LockType::Write)).unwrap();
    let share = Share::access(Share::READ);
    open(&from, &old, (2, share), DelegationWish::Read).unwrap();
    let new = take_to(&from, &to, &old).unwrap();
    to.evict(NOW, &new);
    assert_eq!(to.census(), comity_state::Census::default());
}

#[test]
fn exported_states_have_their_kinds() {
    let from = engine(|_| {});
    let (old, _) = client(&from, "a");
    let open_stateid = opened(&from, &old, 1);
    let sender = Sender::of(NOW, &old);
    from.lock(sender, &lock(open_stateid, 1, LockType::Read)).unwrap();
    let exported = from.export_client(NOW, &old).unwrap();
    assert_eq!((exported.owners.len(), exported.states.len()), (2, 2));
    let share = Share::access(Share::BOTH);
    let is_open = |kind: &ExportedKind| match kind {
        ExportedKind::Open { share: it, closed, .. } => *it == share && !closed,
        _ => false,
    };
    assert!(exported.states.iter().any(|state| is_open(&state.kind)));
    let held = vec![(WHOLE, LockType::Read)];
    let is_lock =
        |kind: &ExportedKind| matches!(kind, ExportedKind::Lock { ranges, .. } if *ranges == held);
    assert!(exported.states.iter().any(|state| is_lock(&state.kind)));
}

/// Delegates directory 7 to a client, which is notified of changes.
fn delegate_directory(engine: &Engine, client: &Arc<Client>) -> Stateid {
    delegate_with(engine, client, 0)
}

/// Does the same for a client that is also notified of these attributes of children.
fn delegate_with(engine: &Engine, client: &Arc<Client>, children: u8) -> Stateid {
    let user = Arc::new(Cred::new(Uid::new(1), Gid::new(1)));
    let wishes = NoticeWishes {
        kinds: Share::ADDED | Share::REMOVED,
        handles: true,
        fileids: true,
        types: false,
        directory: NoticeWishes::CHANGE,
        children,
        child_delay: Duration::ZERO,
        bytes_max: 2048,
        unacknowledged_max: 64,
    };
    let request = DirectoryRequest {
        client,
        caller: caller(1),
        directory: file(7),
        parent: file(6),
        user: &user,
        policy: &Always,
        notices: Some(wishes),
    };
    engine.delegate_directory(NOW, &request).unwrap()
}

/// A change of names in directory 7 by others.
fn change_names(engine: &Engine) -> Result<(), Error> {
    let share = Share::access(Share::BOTH | Share::ADDED);
    engine.break_delegations(NOW, None, &file(7), share)
}

fn recalled(engine: &Engine) -> Vec<Stateid> {
    let effects = std::iter::from_fn(|| engine.poll_effect());
    let recalls = effects.filter_map(|effect| match effect {
        Effect::Recall { stateid, .. } => Some(stateid),
        _ => None,
    });
    recalls.collect()
}

#[test]
fn a_migrated_directory_delegation_is_recalled_and_no_longer_notified() {
    let (from, to) = (engine(|_| {}), engine(|_| {}));
    let (old, _) = client(&from, "a");
    let stateid = delegate_directory(&from, &old);
    assert_eq!(change_names(&from), Ok(()), "the holder is notified");
    let taken = take_to(&from, &to, &old).unwrap();
    assert_eq!(recalled(&to), []);
    assert_eq!(change_names(&to), Err(Error::Delay));
    assert_eq!(recalled(&to), [stateid]);
    to.delegreturn((Sender::of(NOW, &taken), &file(7)), &stateid).unwrap();
    assert_eq!(change_names(&to), Ok(()));
}

#[test]
fn a_client_that_has_notifications_to_acknowledge_is_not_exported() {
    let from = engine(|_| {});
    let (old, _) = client(&from, "a");
    let stateid = delegate_directory(&from, &old);
    let change = NotedChange::Removed { name: b"gone"[..].into() };
    let notified = from.note_change(NOW, None, &file(7), DirectoryNotice { change, after: None });
    let notified = notified.unwrap();
    assert!(!from.is_acknowledged(&notified));
    assert!(matches!(from.export_client(NOW, &old), Err(Error::Delay)));
    from.notices_answered(NOW, &old, (&file(7), &stateid), true);
    assert!(from.is_acknowledged(&notified));
    assert!(from.export_client(NOW, &old).is_ok());
}

/// Another engine does not know which objects the client has seen.
#[test]
fn a_client_that_is_notified_of_children_returns_the_directory_before_it_is_exported() {
    let from = engine(|_| {});
    let (old, _) = client(&from, "a");
    let stateid = delegate_with(&from, &old, NoticeWishes::CHANGE);
    assert!(matches!(from.export_client(NOW, &old), Err(Error::Delay)));
    assert_eq!(recalled(&from), [stateid]);
    from.delegreturn((Sender::of(NOW, &old), &file(7)), &stateid).unwrap();
    assert!(from.export_client(NOW, &old).is_ok());
    assert!(!from.changed_objects().are_watched());
}

#[test]
fn a_client_that_does_not_apply_notifications_loses_the_directory() {
    let engine = engine(|_| {});
    let (old, _) = client(&engine, "a");
    let stateid = delegate_directory(&engine, &old);
    let change = NotedChange::Removed { name: b"gone"[..].into() };
    let notified = engine.note_change(NOW, None, &file(7), DirectoryNotice { change, after: None });
    engine.notices_answered(NOW, &old, (&file(7), &stateid), false);
    assert_eq!(recalled(&engine), [stateid]);
    assert!(!engine.is_acknowledged(notified.as_ref().unwrap()));
    assert_eq!(change_names(&engine), Err(Error::Delay), "no change is notified any more");
    engine.delegreturn((Sender::of(NOW, &old), &file(7)), &stateid).unwrap();
    assert!(engine.is_acknowledged(notified.as_ref().unwrap()));
}
