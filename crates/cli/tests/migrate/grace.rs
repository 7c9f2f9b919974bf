//! A source that restarts before it knows who serves.

use std::thread;
use std::time::Duration;

use crate::common::wait_until;
use crate::holder::{Holder, rival};
use crate::pair::Pair;
use crate::proxy::Proxy;
use comity_proto::nfs4::Nfsstat4;

/// The lease, which the time to reclaim is, too.
const LEASE: Duration = Duration::from_secs(2);

/// Begins migrations whose connection ends later and later, until TAKE is sent and not answered.
fn lose_the_answer(pair: &Pair, proxy: &Proxy) {
    for bytes in (1000..).step_by(50) {
        proxy.cut_after(bytes);
        if pair.migrate(0, &[]).err.contains("its answer did not arrive") {
            return;
        }
    }
}

#[test]
fn the_time_to_reclaim_begins_when_the_source_knows_that_it_serves() {
    let mut pair = Pair::with_lease(LEASE);
    let proxy = pair.put_proxy_between();
    let mut holder = Holder::new(pair.servers[0].port, &pair.file("f"), "holder");
    lose_the_answer(&pair, &proxy);
    pair.restart(0);
    thread::sleep(LEASE * 3);
    proxy.count();
    assert_eq!(pair.serving(&holder.file), 0);
    let (port, path) = (pair.servers[0].port, pair.file("f"));
    assert_ne!(rival(port, (&path, 0)), Nfsstat4::Ok, "the lock was given away");
    holder.arrive(port, (false, true));
    wait_until("the lock is known", || rival(port, (&path, 0)) == Nfsstat4::Denied);
}
