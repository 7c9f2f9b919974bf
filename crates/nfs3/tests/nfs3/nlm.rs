//! The lock manager as a client sees it.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use comity_backend::{Memory, MemoryOptions};
use comity_nfs3::{Grant, Grants, Message, Nlm, Nsm};
use comity_proto::nfs3::{
    Create3args, Createhow3, Diropargs3, Sattr3, Setattr3args, procedure as nfs3,
};
use comity_proto::nlm::{
    Nlm4Cancargs, Nlm4Holder, Nlm4Lock, Nlm4Lockargs, Nlm4Res, Nlm4Share, Nlm4Shareargs,
    Nlm4Shareres, Nlm4Stats, Nlm4Testargs, Nlm4Unlockargs, PROGRAM, procedure,
};
use comity_state::{
    ByteRange, DelegationKind, Engine, FileKey, HostLock, JournalPosition, LocalLock, Locals,
    LockRefusal, LockRequestKind, LockType, Record, Recovered, Settings, Taken,
};
use comity_vfs::{DirectoryHold, Fs, Mode, SetAttr, Uid};
use comity_xdr::{Decoder, Encode, Opaque};

use crate::hunt::twins::{EXPORT, plan, planted, sealed};
use crate::world::{Ground, PEER, World, decoded, encoded};

pub(crate) const NOW: Duration = Duration::from_secs(1);
/// An address of the server.
const SERVER: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 5));
pub(crate) const COOKIE: Opaque<'static, 1024> = Opaque(b"cookie");

pub(crate) struct LockServer {
    pub(crate) engine: Arc<Engine>,
    pub(crate) world: World,
    pub(crate) file: Vec<u8>,
    pub(crate) settled: Arc<AtomicUsize>,
}

pub(crate) fn site(settles: bool) -> LockServer {
    site_beside(settles, None)
}

/// A server on which a local program has locked all bytes of all files.
struct Busy;

impl Locals for Busy {
    fn take(&self, _: &FileKey, _: &LocalLock, _: &mut dyn FnMut() -> Option<usize>) -> Taken {
        Taken::Held
    }

    fn give(&self, _: &FileKey, _: ByteRange, give: &mut dyn FnMut() -> Option<usize>) {
        give();
    }

    fn delegate(&self, _: &FileKey, _: DelegationKind) -> bool {
        false
    }

    fn delegate_directory(&self, _: &FileKey, _: DirectoryHold) -> bool {
        false
    }

    fn settle(&self) {}

    fn is_free(&self, _: &FileKey, _: (ByteRange, LockType)) -> bool {
        false
    }
}

#[test]
fn a_range_that_a_program_has_locked_is_denied_to_hosts() {
    let site = site_beside(true, Some(Arc::new(Busy)));
    assert_eq!(site.lock(1, (10, 10), false), Nlm4Stats::Denied);
    assert_eq!(site.lock(1, (10, 10), true), Nlm4Stats::DeniedGracePeriod);
    let args = Nlm4Testargs { cookie: COOKIE, exclusive: false, alock: site.alock(2, 0, 11) };
    let body = site.ask(procedure::TEST, &args);
    let mut decoder = Decoder::new(&body);
    assert_eq!(decoder.value::<Nlm4Res<'_>>().unwrap().stat, Nlm4Stats::Denied);
    let holder: Nlm4Holder<'_> = decoder.value().unwrap();
    assert_eq!((holder.exclusive, holder.l_offset, holder.l_len), (true, 0, 11));
}

fn site_beside(settles: bool, locals: Option<Arc<dyn Locals>>) -> LockServer {
    site_of(settles, |nlm| nlm.beside(locals))
}

/// A server that sends replies as calls, at most `messages_max` before they are taken. It was
/// reached at an address of its own.
fn site_messaging(messages_max: usize) -> (LockServer, Receiver<Message>) {
    let (sender, receiver) = sync_channel(messages_max);
    let site = site_of(true, |nlm| nlm.messaging(sender));
    (LockServer { world: site.world.reached_at(SERVER), ..site }, receiver)
}

pub(crate) fn site_of(settles: bool, wish: impl FnOnce(Nlm) -> Nlm) -> LockServer {
    let settings = Settings { durable: true, ..Settings::new(7, [7; 16]) };
    let engine = Arc::new(Engine::new(NOW, settings, Recovered::new()));
    let world = World::new(Ground::default());
    let place = Diropargs3 { dir: Opaque(&world.root), name: Opaque(b"a") };
    let mode = Sattr3 { mode: Some(0o640), ..Sattr3::default() };
    world.call(nfs3::CREATE, &Create3args { place, how: Createhow3::Guarded(mode) });
    let file = world.handle("a");
    let settled = Arc::new(AtomicUsize::new(0));
    let (count, storing) = (Arc::clone(&settled), Arc::clone(&engine));
    let settle = move |position: JournalPosition| {
        count.fetch_add(1, Ordering::Relaxed);
        if settles {
            storing.stored(position);
        }
        settles
    };
    let nlm = Nlm::new(Arc::clone(&world.exports), Arc::clone(&engine), || NOW, Arc::new(settle));
    let (nlm, nsm) = (wish(nlm), Nsm::new(Arc::clone(&engine), || NOW, 11));
    LockServer { world: world.with(vec![Arc::new(nlm), Arc::new(nsm)]), engine, file, settled }
}

impl LockServer {
    pub(crate) fn ask(&self, procedure: u32, arguments: &impl Encode) -> Vec<u8> {
        self.world.send(&self.world.record(PROGRAM, procedure, &encoded(arguments))).body
    }

    pub(crate) fn stat(&self, procedure: u32, arguments: &impl Encode) -> Nlm4Stats {
        let body = self.ask(procedure, arguments);
        let res = decoded::<Nlm4Res<'_>>(&body);
        assert_eq!(res.cookie, COOKIE);
        res.stat
    }

    pub(crate) fn alock(&self, svid: i32, l_offset: u64, l_len: u64) -> Nlm4Lock<'_> {
        let (caller_name, oh) = (Opaque(&b"client"[..]), Opaque(&b"owner"[..]));
        Nlm4Lock { caller_name, fh: Opaque(&self.file), oh, svid, l_offset, l_len }
    }

    pub(crate) fn lock(&self, svid: i32, (l_offset, l_len): (u64, u64), block: bool) -> Nlm4Stats {
        let alock = self.alock(svid, l_offset, l_len);
        let (cookie, exclusive, reclaim) = (COOKIE, true, false);
        let args = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state: 1 };
        self.stat(procedure::LOCK, &args)
    }

    pub(crate) fn unlock(&self, svid: i32, l_offset: u64, l_len: u64) -> Nlm4Stats {
        let alock = self.alock(svid, l_offset, l_len);
        self.stat(procedure::UNLOCK, &Nlm4Unlockargs { cookie: COOKIE, alock })
    }
}

#[test]
fn a_lock_excludes_others_until_it_is_freed() {
    let site = site(true);
    assert_eq!(site.lock(1, (10, 10), false), Nlm4Stats::Granted);
    assert_eq!(site.lock(2, (19, 1), false), Nlm4Stats::Denied);
    assert_eq!(site.lock(2, (20, 0), false), Nlm4Stats::Granted);
    assert_eq!(site.unlock(1, 0, 0), Nlm4Stats::Granted);
    assert_eq!(site.lock(2, (0, 0), false), Nlm4Stats::Granted);
}

#[test]
fn a_test_returns_the_holder_and_its_range() {
    let site = site(true);
    assert_eq!(site.lock(1, (10, 0), false), Nlm4Stats::Granted);
    let args = Nlm4Testargs { cookie: COOKIE, exclusive: false, alock: site.alock(2, 0, 11) };
    let body = site.ask(procedure::TEST, &args);
    let mut decoder = Decoder::new(&body);
    let res: Nlm4Res<'_> = decoder.value().unwrap();
    assert_eq!(res.stat, Nlm4Stats::Denied);
    let holder: Nlm4Holder<'_> = decoder.value().unwrap();
    let oh = Opaque(&b"owner"[..]);
    assert_eq!(holder, Nlm4Holder { exclusive: true, svid: 1, oh, l_offset: 10, l_len: 0 });
    assert!(decoder.rest().is_empty());
    let own = Nlm4Testargs { alock: site.alock(1, 0, 11), ..args };
    assert_eq!(site.stat(procedure::TEST, &own), Nlm4Stats::Granted);
}

#[test]
fn a_waiting_host_is_given_the_lock_and_may_decline_it() {
    let (site, grants, grant) = granted_to_a_waiting_host();
    assert_eq!(grant.address.to_string(), "127.0.0.1");
    let args = decoded::<Nlm4Testargs<'_>>(&grant.arguments);
    assert_eq!(args.alock, site.alock(2, 5, 1));
    assert_eq!(
        site.lock(3, (5, 1), false),
        Nlm4Stats::Denied,
        "it is held for the host that was told"
    );
    let res = |stat| encoded(&Nlm4Res { cookie: COOKIE, stat });
    grants.answered(NOW, &grant, &res(Nlm4Stats::Denied));
    assert_eq!(site.lock(3, (5, 1), false), Nlm4Stats::Granted, "a declined lock is not freed");
}

/// The host's own call came first and was answered, and it does not know the grant that followed.
#[test]
fn a_host_that_asked_again_keeps_the_lock_although_it_declines_the_grant() {
    let (site, grants, grant) = granted_to_a_waiting_host();
    assert_eq!(site.lock(2, (5, 1), true), Nlm4Stats::Granted);
    let res = Nlm4Res { cookie: COOKIE, stat: Nlm4Stats::Denied };
    grants.answered(NOW, &grant, &encoded(&res));
    assert_eq!(site.lock(3, (5, 1), false), Nlm4Stats::Denied);
}

/// A host that had the lock and lost it with its lease could otherwise reclaim it after a restart.
#[test]
fn a_grant_is_sent_once_the_loss_of_the_conflicting_lock_is_stored() {
    for settles in [true, false] {
        let site = site(true);
        assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Granted);
        let holder = site.engine.known_host(NOW, b"127.0.0.1").unwrap();
        let waiter = site.engine.host(NOW, b"192.0.2.9", comity_state::Origin::default()).unwrap();
        let file = site.world.exports.current().unseal_key(&site.file).unwrap();
        let (kind, range) = (LockType::Write, ByteRange { first: 0, last: 9 });
        let lock = HostLock { owner: b"o", file, range, kind };
        let waits = site.engine.lock_host(NOW, &waiter, &lock, LockRequestKind::Blocking);
        assert!(matches!(waits, Err(LockRefusal::Denied { .. })), "{waits:?}");
        site.engine.evict(NOW, &holder);
        let storing = Arc::clone(&site.engine);
        let settle = move |position: JournalPosition| {
            storing.stored(position);
            settles
        };
        let grants = Grants::new(Arc::clone(&site.engine), Arc::clone(&site.world.exports));
        let grants = grants.settling(Arc::new(settle));
        let grant = grants.take(NOW, site.engine.poll_effect().unwrap());
        assert_eq!((grant.is_some(), site.engine.unstored()), (settles, None));
        assert_eq!(site.engine.census().locks, usize::from(settles));
    }
}

/// Linux returns a cookie without clearing its padding. The server must understand such a reply.
#[test]
fn a_grant_has_a_cookie_that_needs_no_padding() {
    let (_site, _grants, grant) = granted_to_a_waiting_host();
    let args = decoded::<Nlm4Testargs<'_>>(&grant.arguments);
    assert!(!args.cookie.0.is_empty() && args.cookie.0.len().is_multiple_of(4));
}

/// The host may have the lock: if it were freed, two hosts could have it.
#[test]
fn a_host_that_may_know_of_its_lock_keeps_it_after_an_answer_that_is_not_understood() {
    let (site, grants, grant) = granted_to_a_waiting_host();
    let unpadded = [0, 0, 0, 2, b'a', b'b', 1, 0, 0, 0, 0, 0];
    for results in [&unpadded[..], &[], &[0; 7], &[0, 0, 0, 0, 0, 0, 0, 99]] {
        grants.answered(NOW, &grant, results);
        assert_eq!(site.lock(3, (5, 1), false), Nlm4Stats::Denied, "{results:?}");
    }
    site.unlock(2, 5, 1);
    assert_eq!(site.lock(3, (5, 1), false), Nlm4Stats::Granted);
}

#[test]
fn a_host_that_could_not_be_told_of_a_lock_has_none() {
    let (site, grants, grant) = granted_to_a_waiting_host();
    assert_eq!(site.lock(3, (5, 1), false), Nlm4Stats::Denied);
    grants.withdraw(NOW, &grant);
    assert_eq!(site.lock(3, (5, 1), false), Nlm4Stats::Granted);
}

/// A site, and a lock that a host waited for and that was taken for it.
fn granted_to_a_waiting_host() -> (LockServer, Grants, Grant) {
    let site = site(true);
    let grants = Grants::new(Arc::clone(&site.engine), Arc::clone(&site.world.exports));
    assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Granted);
    assert_eq!(site.lock(2, (5, 1), true), Nlm4Stats::Blocked);
    site.unlock(1, 0, 0);
    let grant = grants.take(NOW, site.engine.poll_effect().unwrap()).unwrap();
    (site, grants, grant)
}

/// A host accepts a grant only from the server address that it used.
#[test]
fn a_grant_leaves_from_the_address_that_the_host_used_last() {
    let site = site(true);
    let grants = Grants::new(Arc::clone(&site.engine), Arc::clone(&site.world.exports));
    let granted_from = |site: &LockServer| {
        assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Granted);
        assert_eq!(site.lock(2, (5, 1), true), Nlm4Stats::Blocked);
        site.unlock(1, 0, 0);
        let grant = grants.take(NOW, site.engine.poll_effect().unwrap()).unwrap();
        grants.withdraw(NOW, &grant);
        grant.source
    };
    assert_eq!(granted_from(&site), None, "it is not known");
    let site = LockServer { world: site.world.reached_at(SERVER), ..site };
    assert_eq!(granted_from(&site), Some(SERVER));
}

#[test]
fn messages_are_answered_by_calls() {
    let (site, messages) = site_messaging(8);
    let told = |asked, answered, arguments: &[u8]| {
        let reply = site.world.send(&site.world.record(PROGRAM, asked, arguments));
        assert_eq!((reply.verdict, reply.body.len()), ((0, 0), 0), "the reply of RPC is empty");
        let message = messages.try_recv().unwrap();
        let about = (message.host, message.source, message.procedure);
        assert_eq!(about, (PEER, Some(SERVER), answered));
        message.arguments
    };
    let stat = |asked, answered, arguments: Vec<u8>| {
        let told = told(asked, answered, &arguments);
        let res: Nlm4Res<'_> = decoded(&told);
        assert_eq!(res.cookie, COOKIE);
        res.stat
    };
    let lock = |svid, block| {
        let alock = site.alock(svid, 0, 10);
        let (cookie, exclusive, reclaim) = (COOKIE, true, false);
        let args = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state: 1 };
        stat(procedure::LOCK_MSG, procedure::LOCK_RES, encoded(&args))
    };
    assert_eq!(lock(1, false), Nlm4Stats::Granted);
    let tested = Nlm4Testargs { cookie: COOKIE, exclusive: true, alock: site.alock(2, 5, 1) };
    let tested = told(procedure::TEST_MSG, procedure::TEST_RES, &encoded(&tested));
    let mut tested = Decoder::new(&tested);
    assert_eq!(tested.value::<Nlm4Res<'_>>().unwrap().stat, Nlm4Stats::Denied);
    assert_eq!(tested.value::<Nlm4Holder<'_>>().unwrap().svid, 1);
    assert_eq!(lock(2, true), Nlm4Stats::Blocked);
    let (cookie, block, exclusive, alock) = (COOKIE, true, true, site.alock(2, 0, 10));
    let args = encoded(&Nlm4Cancargs { cookie, block, exclusive, alock });
    assert_eq!(stat(procedure::CANCEL_MSG, procedure::CANCEL_RES, args), Nlm4Stats::Granted);
    let args = encoded(&Nlm4Unlockargs { cookie, alock: site.alock(1, 0, 0) });
    assert_eq!(stat(procedure::UNLOCK_MSG, procedure::UNLOCK_RES, args), Nlm4Stats::Granted);
    assert!(site.engine.poll_effect().is_none(), "a host that cancelled is told of its lock");
    assert_eq!(lock(2, false), Nlm4Stats::Granted);
}

/// The answer to a message may be lost, and the client then repeats the message.
#[test]
fn a_message_that_comes_again_is_answered_again() {
    let (site, messages) = site_messaging(8);
    let args = Nlm4Testargs { cookie: COOKIE, exclusive: true, alock: site.alock(1, 0, 0) };
    let record = site.world.record(PROGRAM, procedure::TEST_MSG, &encoded(&args));
    site.world.send(&record);
    site.world.send(&record);
    assert_eq!(messages.try_iter().count(), 2);
    let alock = site.alock(1, 0, 0);
    let (cookie, exclusive, block, reclaim) = (COOKIE, true, false, false);
    let args = Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state: 1 };
    let record = site.world.record(PROGRAM, procedure::LOCK_MSG, &encoded(&args));
    site.world.send(&record);
    site.world.send(&record);
    let told: Vec<_> = messages.try_iter().map(|told| told.arguments).collect();
    assert_eq!(told.len(), 2);
    assert!(told.iter().all(|told| decoded::<Nlm4Res<'_>>(told).stat == Nlm4Stats::Granted));
}

#[test]
fn answers_above_the_limit_are_dropped() {
    let (site, messages) = site_messaging(1);
    let args = Nlm4Testargs { cookie: COOKIE, exclusive: true, alock: site.alock(1, 0, 0) };
    for _ in 0..3 {
        assert!(site.ask(procedure::TEST_MSG, &args).is_empty());
    }
    assert_eq!(messages.try_iter().count(), 1);
}

#[test]
fn messages_are_refused_by_a_server_that_cannot_send_answers() {
    let site = site(true);
    let args = Nlm4Testargs { cookie: COOKIE, exclusive: true, alock: site.alock(1, 0, 0) };
    let record = site.world.record(PROGRAM, procedure::TEST_MSG, &encoded(&args));
    assert_eq!(site.world.send(&record).verdict, (0, 3), "PROC_UNAVAIL");
}

#[test]
fn a_host_that_cancels_its_wait_gets_no_grant() {
    let site = site(true);
    assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Granted);
    assert_eq!(site.lock(2, (5, 1), true), Nlm4Stats::Blocked);
    let (cookie, block, exclusive, alock) = (COOKIE, true, true, site.alock(2, 5, 1));
    let args = Nlm4Cancargs { cookie, block, exclusive, alock };
    assert_eq!(site.stat(procedure::CANCEL, &args), Nlm4Stats::Granted);
    site.unlock(1, 0, 0);
    assert!(site.engine.poll_effect().is_none());
}

/// Nothing is granted to a host before it is stored that this host may reclaim after a restart.
#[test]
fn a_host_is_remembered_before_it_is_granted_anything() {
    let kept = site(true);
    assert_eq!(kept.lock(1, (0, 0), false), Nlm4Stats::Granted);
    assert_eq!(kept.lock(1, (0, 5), false), Nlm4Stats::Granted);
    assert_eq!(kept.settled.load(Ordering::Relaxed), 1, "once for each host");
    let lost = site(false);
    assert_eq!(lost.lock(1, (0, 0), false), Nlm4Stats::DeniedNolocks);
    let mut records = Vec::new();
    lost.engine.poll_records(&mut records);
    assert!(matches!(&records[..], [Record::Client(host, _)] if &*host.id == b"127.0.0.1"));
}

/// A share can be reclaimed after a restart, like a lock.
#[test]
fn a_host_is_remembered_before_it_is_granted_a_share() {
    let ask = |site: &LockServer, oh| {
        let (caller_name, fh, oh) = (Opaque(&b"client"[..]), Opaque(&site.file[..]), Opaque(oh));
        let share = Nlm4Share { caller_name, fh, oh, mode: 2, access: 1 };
        let args = Nlm4Shareargs { cookie: COOKIE, share, reclaim: false };
        decoded::<Nlm4Shareres<'_>>(&site.ask(procedure::SHARE, &args)).stat
    };
    let kept = site(true);
    assert_eq!(ask(&kept, b"one"), Nlm4Stats::Granted);
    assert_eq!(kept.settled.load(Ordering::Relaxed), 1);
    let lost = site(false);
    assert_eq!(ask(&lost, b"one"), Nlm4Stats::DeniedNolocks);
    assert_eq!(lost.engine.census().opens, 0, "a refused share is held");
}

/// If, for example, the disk of the state is full, the host still believes that it has its earlier
/// locks.
#[test]
fn a_host_that_is_granted_nothing_more_keeps_its_locks() {
    let site = site(false);
    let share = |oh, mode| {
        let (caller_name, fh, oh) = (Opaque(&b"client"[..]), Opaque(&site.file[..]), Opaque(oh));
        let share = Nlm4Share { caller_name, fh, oh, mode, access: 1 };
        let args = Nlm4Shareargs { cookie: COOKIE, share, reclaim: false };
        decoded::<Nlm4Shareres<'_>>(&site.ask(procedure::SHARE, &args)).stat
    };
    site.engine.host(NOW, b"127.0.0.1", comity_state::Origin::default()).unwrap();
    site.engine.stored(site.engine.unstored().unwrap());
    assert_eq!(site.lock(1, (0, 10), false), Nlm4Stats::Granted);
    assert_eq!(share(b"one", 0), Nlm4Stats::Granted);
    site.engine.host(NOW, b"192.0.2.9", comity_state::Origin::default()).unwrap();
    assert_eq!(site.lock(1, (0, 10), false), Nlm4Stats::DeniedNolocks);
    assert_eq!(share(b"one", 2), Nlm4Stats::DeniedNolocks);
    let census = site.engine.census();
    assert_eq!((census.locks, census.opens), (1, 1));
}

/// The message that granted the lock was lost, so that the host cancels a lock that it already has,
/// and does not unlock it.
#[test]
fn a_host_that_was_not_told_of_its_lock_and_cancels_has_none() {
    let (site, _grants, _grant) = granted_to_a_waiting_host();
    let (cookie, block, exclusive, alock) = (COOKIE, true, true, site.alock(2, 5, 1));
    let args = Nlm4Cancargs { cookie, block, exclusive, alock };
    assert_eq!(site.stat(procedure::CANCEL, &args), Nlm4Stats::Granted);
    assert_eq!(site.lock(3, (5, 1), false), Nlm4Stats::Granted);
}

/// A CANCEL that is delayed is about a lock that is granted already.
#[test]
fn a_host_that_was_told_of_its_lock_keeps_it_whatever_it_cancelled() {
    let (site, grants, grant) = granted_to_a_waiting_host();
    let res = Nlm4Res { cookie: COOKIE, stat: Nlm4Stats::Granted };
    grants.answered(NOW, &grant, &encoded(&res));
    let (cookie, block, exclusive, alock) = (COOKIE, true, true, site.alock(2, 5, 1));
    let args = Nlm4Cancargs { cookie, block, exclusive, alock };
    site.stat(procedure::CANCEL, &args);
    assert_eq!(site.lock(3, (5, 1), false), Nlm4Stats::Denied);
}

/// A lock file that no user may read or write, as its owner made and opened it.
#[test]
fn the_owner_of_a_file_may_lock_it_whatever_its_mode() {
    let site = site(true);
    let (object, guard) = (Opaque(&site.file[..]), None);
    let new_attributes = Sattr3 { uid: Some(77), mode: Some(0), ..Sattr3::default() };
    site.world.call(nfs3::SETATTR, &Setattr3args { object, new_attributes, guard });
    site.world.act_as(77, 77, &[]);
    assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Granted);
    site.world.act_as(78, 78, &[]);
    assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Denied);
}

/// Otherwise any sender of datagrams could fill the server with hosts that are never forgotten.
#[test]
fn a_host_that_holds_nothing_is_not_remembered_for_unlocking() {
    let mut site = site(true);
    for (fh, said) in [(site.file.clone(), Nlm4Stats::Granted), (vec![7; 32], Nlm4Stats::StaleFh)] {
        site.file = fh;
        let (caller_name, fh, oh) = (Opaque(&b"c"[..]), Opaque(&site.file[..]), Opaque(&b"o"[..]));
        let share = Nlm4Share { caller_name, fh, oh, mode: 0, access: 1 };
        let args = Nlm4Shareargs { cookie: COOKIE, share, reclaim: false };
        let body = site.ask(procedure::UNSHARE, &args);
        assert_eq!(decoded::<Nlm4Shareres<'_>>(&body).stat, said);
        assert_eq!(site.unlock(1, 0, 0), said);
        let (cookie, block, exclusive, alock) = (COOKIE, true, true, site.alock(2, 5, 1));
        let args = Nlm4Cancargs { cookie, block, exclusive, alock };
        assert_eq!(site.stat(procedure::CANCEL, &args), said);
    }
    assert_eq!((site.engine.census().clients, site.engine.unstored()), (0, None));
}

#[test]
fn a_caller_that_may_not_use_a_file_may_not_lock_it() {
    let site = site(true);
    site.world.act_as(77, 77, &[]);
    assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Denied);
    site.world.act_as(0, 0, &[]);
    assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Granted);
    let stale = Nlm4Lock { fh: Opaque(&[1; 20]), ..site.alock(1, 0, 0) };
    let args = Nlm4Unlockargs { cookie: COOKIE, alock: stale };
    assert_eq!(site.stat(procedure::UNLOCK, &args), Nlm4Stats::StaleFh);
}

#[test]
fn a_range_beyond_the_end_of_all_files_is_none() {
    let site = site(true);
    assert_eq!(site.lock(1, (u64::MAX, 2), false), Nlm4Stats::Fbig);
}

#[test]
fn shares_conflict_as_their_deny_modes_say() {
    let site = site(true);
    let share = |oh, access, mode| {
        let (caller_name, fh, oh) = (Opaque(&b"client"[..]), Opaque(&site.file[..]), Opaque(oh));
        let share = Nlm4Share { caller_name, fh, oh, mode, access };
        Nlm4Shareargs { cookie: COOKIE, share, reclaim: false }
    };
    let ask = |procedure, args: Nlm4Shareargs<'_>| {
        decoded::<Nlm4Shareres<'_>>(&site.ask(procedure, &args)).stat
    };
    assert_eq!(ask(procedure::SHARE, share(b"one", 1, 2)), Nlm4Stats::Granted);
    assert_eq!(ask(procedure::SHARE, share(b"two", 2, 0)), Nlm4Stats::Denied);
    assert_eq!(ask(procedure::UNSHARE, share(b"one", 1, 2)), Nlm4Stats::Granted);
    assert_eq!(ask(procedure::SHARE, share(b"two", 2, 0)), Nlm4Stats::Granted);
}

/// A host cannot use the handle of a file that has been hidden from it, so that its locks would
/// block others for ever.
#[test]
fn locks_of_a_hidden_file_are_freed_and_its_handle_is_stale() {
    let owned = |mode| SetAttr { uid: Some(Uid::new(7)), mode, ..SetAttr::default() };
    let root_mode = Mode::new(0o777);
    let fs: Arc<dyn Fs> =
        Arc::new(Memory::new(MemoryOptions { root_mode, ..MemoryOptions::default() }).unwrap());
    let file = planted(&*fs, &fs.root(), "a", 5, &owned(Some(Mode::new(0o666))));
    let plan = |cloak: &str| plan(&fs, &format!("rw,insecure,fsid={EXPORT}{cloak}"));
    let world = World::of(plan(""));
    let (engine, file) = (Arc::clone(&world.engine), sealed(&file));
    let site = LockServer { engine, world, file, settled: Arc::default() };
    site.world.act_as(1, 1, &[]);
    assert_eq!(site.lock(1, (0, 10), false), Nlm4Stats::Granted);
    site.world.exports.replace(plan(",cloak_uid=7:+000"));
    assert_eq!(site.lock(1, (20, 10), false), Nlm4Stats::StaleFh);
    site.world.act_as(7, 7, &[]);
    assert_eq!(site.lock(2, (0, 10), false), Nlm4Stats::Denied);
    site.world.act_as(1, 1, &[]);
    assert_eq!(site.unlock(1, 0, 10), Nlm4Stats::StaleFh);
    site.world.act_as(7, 7, &[]);
    assert_eq!(site.lock(2, (0, 10), false), Nlm4Stats::Granted);
}
