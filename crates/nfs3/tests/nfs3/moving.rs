//! Calls about an export that moves to another server, and calls that are forwarded.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use comity_export::{Referred, RpcPeer, Whereabouts};
use comity_nfs3::{CallForwarder, Forwarded};
use comity_proto::nlm::{Nlm4Notify, Nlm4Stats, procedure};
use comity_rpc::Call;
use comity_xdr::Opaque;

use crate::nlm::{LockServer, site, site_of};

/// Counts the hosts of which the other servers are told.
#[derive(Default)]
struct OtherServers(AtomicUsize);

impl CallForwarder for OtherServers {
    fn forwards(&self, _: Referred) -> bool {
        true
    }

    fn forward(&self, _: Referred, _: &RpcPeer, _: &Call<'_>) -> Forwarded {
        Forwarded::NotSent
    }

    fn forward_to_all(&self, _: &RpcPeer, _: &Call<'_>) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

#[test]
fn nothing_is_unlocked_while_an_export_moves() {
    let site = site(true);
    assert_eq!(site.lock(1, (0, 10), false), Nlm4Stats::Granted);
    let exports = &site.world.exports;
    let paths = [PathBuf::from("/srv/pub")];
    let moving = exports.current().placing(&paths, &Whereabouts::Moving).unwrap();
    let before = exports.replace(moving);
    assert_eq!(site.unlock(1, 0, 10), Nlm4Stats::DeniedGracePeriod);
    exports.replace(before);
    assert_eq!(site.lock(2, (0, 1), false), Nlm4Stats::Denied);
    assert_eq!(site.unlock(1, 0, 10), Nlm4Stats::Granted);
    assert_eq!(site.lock(2, (0, 1), false), Nlm4Stats::Granted);
}

/// Two servers that forward to each other would do so for ever.
#[test]
fn the_restart_of_a_host_is_not_told_on_by_a_server_that_was_told() {
    let others = Arc::<OtherServers>::default();
    let forwarder = Arc::clone(&others);
    let LockServer { world, .. } = site_of(true, |nlm| nlm.forwarding(forwarder));
    let notice = Nlm4Notify { name: Opaque(b"client"), state: 3 };
    let world = world.calling_from(700);
    let ask = |world: &crate::world::World| {
        let record = world.record(
            comity_proto::nlm::PROGRAM,
            procedure::FREE_ALL,
            &crate::world::encoded(&notice),
        );
        world.send(&record).verdict
    };
    assert_eq!(ask(&world), (0, 0));
    assert_eq!(others.0.load(Ordering::Relaxed), 1);
    assert_eq!(ask(&world.called_by_a_server()), (0, 0));
    assert_eq!(others.0.load(Ordering::Relaxed), 1);
}
