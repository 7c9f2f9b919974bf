//! Calls to the lock manager, which names files by their handles only.

use comity_export::ExportId;
use comity_proto::nlm::{
    Nlm4Cancargs, Nlm4Lock, Nlm4Lockargs, Nlm4Share, Nlm4Shareargs, Nlm4Testargs, Nlm4Unlockargs,
    PROGRAM, procedure,
};
use comity_state::{ByteRange, HostLock, LockRequestKind, LockType};
use comity_xdr::Opaque;

use super::shot::Shot;
use super::twins::{EXPORT, Target, Twins};
use crate::world::{BEGUN, encoded};

const COOKIE: Opaque<'static, 1024> = Opaque(b"cookie");

/// Lets another host lock every object, so that replies have a holder to show.
pub(crate) fn hold(twins: &Twins) {
    for (side, twin) in twins.twins.iter().enumerate() {
        let engine = &twin.world.engine;
        let host = engine.host(BEGUN, b"192.0.2.1", comity_state::Origin::default()).unwrap();
        for target in &twins.targets {
            let plan = twin.world.exports.current();
            let sealed = plan.seal(ExportId(EXPORT), &target.handles[side]);
            let file = plan.unseal_key(sealed.bytes()).unwrap();
            let range = ByteRange::new(5, 5).unwrap();
            let lock = HostLock { owner: b"other", file, range, kind: LockType::Write };
            engine.lock_host(BEGUN, &host, &lock, LockRequestKind::NonBlocking).unwrap();
        }
    }
}

/// All calls to the lock manager about an object.
pub(crate) fn locks(target: &Target) -> Vec<Shot> {
    let shot = |procedure, arguments: &dyn Fn(&[u8]) -> Vec<u8>| {
        let told = format!("procedure {procedure} of NLM on {}", target.path);
        Shot { program: PROGRAM, told, ..Shot::on(procedure, target, arguments) }
    };
    let (cookie, exclusive, block) = (COOKIE, true, true);
    let lock = |block| {
        move |fh: &[u8]| {
            let alock = alock(fh, 0);
            let (reclaim, state) = (false, 1);
            encoded(&Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state })
        }
    };
    let share = |fh: &[u8]| {
        let (caller_name, fh, oh) = (Opaque(&b"client"[..]), Opaque(fh), Opaque(&b"owner"[..]));
        let share = Nlm4Share { caller_name, fh, oh, mode: 0, access: 1 };
        encoded(&Nlm4Shareargs { cookie, share, reclaim: false })
    };
    let test = |fh: &[u8]| encoded(&Nlm4Testargs { cookie, exclusive, alock: alock(fh, 0) });
    let cancel =
        |fh: &[u8]| encoded(&Nlm4Cancargs { cookie, block, exclusive, alock: alock(fh, 0) });
    let unlock = |fh: &[u8]| encoded(&Nlm4Unlockargs { cookie, alock: alock(fh, 20) });
    vec![
        shot(procedure::TEST, &test),
        shot(procedure::TEST_MSG, &test),
        shot(procedure::LOCK_MSG, &lock(true)),
        shot(procedure::CANCEL_MSG, &cancel),
        shot(procedure::LOCK, &lock(false)),
        shot(procedure::LOCK, &lock(true)),
        shot(procedure::NM_LOCK, &lock(false)),
        shot(procedure::CANCEL, &cancel),
        shot(procedure::LOCK, &|fh| {
            let alock = alock(fh, 20);
            let (reclaim, state) = (false, 1);
            encoded(&Nlm4Lockargs { cookie, block, exclusive, alock, reclaim, state })
        }),
        shot(procedure::UNLOCK, &unlock),
        shot(procedure::UNLOCK_MSG, &unlock),
        shot(procedure::SHARE, &share),
        shot(procedure::UNSHARE, &share),
    ]
}

/// A lock of ten bytes from `l_offset` on.
fn alock(fh: &[u8], l_offset: u64) -> Nlm4Lock<'_> {
    let (caller_name, oh) = (Opaque(&b"client"[..]), Opaque(&b"owner"[..]));
    Nlm4Lock { caller_name, fh: Opaque(fh), oh, svid: 1, l_offset, l_len: 10 }
}
