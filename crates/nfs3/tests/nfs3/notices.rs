//! Hosts of NLM notify the server of their restart: FREE_ALL, SM_NOTIFY.

use comity_proto::nlm::{Nlm4Lockargs, Nlm4Notify, Nlm4Stats, procedure};
use comity_proto::nsm::{self, HostName, Res, SmStatRes, StatChge};
use comity_state::{ByteRange, HostLock, LockRequestKind, LockType, Origin};
use comity_xdr::Opaque;

use crate::nlm::{COOKIE, LockServer, NOW, site};
use crate::world::{decoded, encoded};

/// A site that is called by the system of a host (from a port below 1024), not by a user.
fn site_for_system() -> LockServer {
    let site = site(true);
    LockServer { world: site.world.calling_from(1023), ..site }
}

#[test]
fn a_user_of_a_host_does_not_free_its_locks() {
    let site = site(true);
    assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Granted);
    site.ask(procedure::FREE_ALL, &Nlm4Notify { name: Opaque(b"127.0.0.1"), state: 3 });
    let notice = encoded(&StatChge { mon_name: Opaque(b"127.0.0.1"), state: 3 });
    site.world.send(&site.world.record(nsm::PROGRAM, nsm::procedure::NOTIFY, &notice));
    assert_eq!(site.lock(2, (0, 0), false), Nlm4Stats::Denied);
}

#[test]
fn a_host_frees_no_locks_of_another_whatever_name_it_gives() {
    let site = site_for_system();
    let other = site.engine.host(NOW, b"192.0.2.1", Origin::default()).unwrap();
    let (owner, range, kind) = (&b"owner"[..], ByteRange::ALL, LockType::Write);
    let file = site.world.exports.current().unseal_key(&site.file).unwrap();
    let lock = HostLock { owner, file, range, kind };
    site.engine.lock_host(NOW, &other, &lock, LockRequestKind::NonBlocking).unwrap();
    site.ask(procedure::FREE_ALL, &Nlm4Notify { name: Opaque(b"192.0.2.1"), state: 3 });
    let notice = encoded(&StatChge { mon_name: Opaque(b"192.0.2.1"), state: 3 });
    site.world.send(&site.world.record(nsm::PROGRAM, nsm::procedure::NOTIFY, &notice));
    assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Denied);
}

#[test]
fn a_host_that_restarts_loses_its_locks() {
    let site = site_for_system();
    assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Granted);
    site.ask(procedure::FREE_ALL, &Nlm4Notify { name: Opaque(b"anybody"), state: 3 });
    assert_eq!(site.lock(2, (0, 0), false), Nlm4Stats::Granted);
}

#[test]
fn a_notice_of_the_status_monitor_frees_the_locks_of_an_earlier_state() {
    let site = site_for_system();
    assert_eq!(site.lock(1, (0, 0), false), Nlm4Stats::Granted);
    let notify = |state| {
        let notice = encoded(&StatChge { mon_name: Opaque(b"anybody"), state });
        site.world.send(&site.world.record(nsm::PROGRAM, nsm::procedure::NOTIFY, &notice)).body
    };
    // The lock was taken in state 1 of the host.
    assert!(notify(1).is_empty());
    assert_eq!(site.lock(2, (0, 0), false), Nlm4Stats::Denied);
    assert!(notify(3).is_empty());
    assert_eq!(site.lock(2, (0, 0), false), Nlm4Stats::Granted);
    let name: HostName<'_> = Opaque(b"anybody");
    let name = encoded(&name);
    let said = site.world.send(&site.world.record(nsm::PROGRAM, nsm::procedure::STAT, &name)).body;
    assert_eq!(decoded::<SmStatRes>(&said), SmStatRes { res: Res::Fail, state: 11 });
}

/// A host that is not monitored reports no state of its own.
#[test]
fn an_unmonitored_lock_does_not_set_the_state_of_its_host() {
    let site = site_for_system();
    assert_eq!(site.lock(1, (0, 10), false), Nlm4Stats::Granted);
    let (cookie, exclusive, reclaim, alock) = (COOKIE, true, false, site.alock(2, 20, 10));
    let args = Nlm4Lockargs { cookie, block: false, exclusive, alock, reclaim, state: 0 };
    assert_eq!(site.stat(procedure::NM_LOCK, &args), Nlm4Stats::Granted);
    let notice = encoded(&StatChge { mon_name: Opaque(b"anybody"), state: 1 });
    site.world.send(&site.world.record(nsm::PROGRAM, nsm::procedure::NOTIFY, &notice));
    assert_eq!(site.lock(3, (0, 10), false), Nlm4Stats::Denied);
}
