//! Opens and locks in minor versions with sessions, where an operation can use the stateid of an
//! earlier one in its COMPOUND.

use comity_proto::nfs4::{
    Createhow4, Creatverfattr, Lock4args, Locker4, Lockt4args, NfsLockType4, Open4args, OpenClaim4,
    OpenDelegationType4, OpenToLockOwner4, Openflag4, StateOwner4, Stateid4, operation as op,
    share,
};
use comity_xdr::{Decoder, Opaque};

use super::rng::Rng;
use super::shot::{Ops, Shot};
use super::twins::Target;
use crate::attributes;

const OWNER: StateOwner4<'static> = StateOwner4 { clientid: 0, owner: Opaque(b"somebody") };

/// Opens by handle with all kinds of claims, and locks.
pub(crate) fn by_handle(rng: &mut Rng, target: &Target) -> Vec<Shot> {
    let access = *rng.pick(&[share::READ, share::WRITE, share::BOTH]);
    let opened = |claim: OpenClaim4<'static>| {
        let told = format!("OPEN of {} by {claim:?} for {access}", target.path);
        let args = args(access, Openflag4::NoCreate, claim);
        Shot::new(told, |ops| ops.at(target).op(op::OPEN, &args).look())
    };
    let stateid = Stateid4::ANONYMOUS;
    vec![
        opened(OpenClaim4::Fh),
        opened(OpenClaim4::DelegCurFh(stateid)),
        opened(OpenClaim4::DelegPrevFh),
        opened(OpenClaim4::Previous(OpenDelegationType4::Write)),
        Shot::new(format!("OPEN and LOCK of {}", target.path), |ops| {
            locked(ops.at(target), OpenClaim4::Fh)
        }),
        Shot::new(format!("LOCKT of {}", target.path), |ops| {
            let (locktype, offset, length) = (NfsLockType4::Write, 0, u64::MAX);
            let owner = StateOwner4 { owner: Opaque(b"other"), ..OWNER };
            ops.at(target).op(op::LOCKT, &Lockt4args { locktype, offset, length, owner })
        }),
    ]
}

/// Opens by name with all kinds of claims that create nothing, and locks.
pub(crate) fn by_name(rng: &mut Rng, dir: &Target, name: &[u8]) -> Vec<Shot> {
    let access = *rng.pick(&[share::READ, share::WRITE, share::BOTH]);
    let (file, delegate_stateid) = (Opaque(name), Stateid4::ANONYMOUS);
    let opened = |claim: OpenClaim4<'_>| {
        let told = format!("OPEN of {:?} in {}", String::from_utf8_lossy(name), dir.path);
        let args = args(access, Openflag4::NoCreate, claim);
        let told = format!("{told} by {claim:?} for {access}");
        Shot::new(told, |ops| ops.at(dir).op(op::OPEN, &args).look())
    };
    vec![
        opened(OpenClaim4::Null(file)),
        opened(OpenClaim4::DelegateCur { delegate_stateid, file }),
        opened(OpenClaim4::DelegatePrev(file)),
        Shot::new(format!("OPEN and LOCK of {:?}", String::from_utf8_lossy(name)), |ops| {
            locked(ops.at(dir), OpenClaim4::Null(file))
        }),
    ]
}

/// An OPEN that may create a file.
pub(crate) fn made(rng: &mut Rng, dir: &Target, name: &[u8], settings: &[&str]) -> Shot {
    let encoded = attributes::encode(settings);
    let attrs = Decoder::whole(&encoded).unwrap();
    let how = match rng.below(4) {
        0 | 1 => Createhow4::Unchecked(attrs),
        2 => Createhow4::Guarded(attrs),
        _ => Createhow4::Exclusive41(Creatverfattr { verf: [3; 8], attrs }),
    };
    let access = *rng.pick(&[share::READ, share::WRITE, share::BOTH]);
    let args = args(access, Openflag4::Create(how), OpenClaim4::Null(Opaque(name)));
    let told = format!("OPEN {how:?} of {:?} in {}", String::from_utf8_lossy(name), dir.path);
    Shot::new(told, |ops| ops.at(dir).op(op::OPEN, &args).look()).onto(dir, name)
}

/// Opens for writing and locks the beginning, under the stateid of that OPEN.
fn locked(ops: Ops, claim: OpenClaim4<'_>) -> Ops {
    let lock_owner = StateOwner4 { owner: Opaque(b"locker"), ..OWNER };
    let new = OpenToLockOwner4 {
        open_seqid: 0,
        open_stateid: Stateid4::CURRENT,
        lock_seqid: 0,
        lock_owner,
    };
    let (locktype, reclaim, offset, length) = (NfsLockType4::Write, false, 0, 10);
    let lock = Lock4args { locktype, reclaim, offset, length, locker: Locker4::New(new) };
    ops.op(op::OPEN, &args(share::BOTH, Openflag4::NoCreate, claim)).op(op::LOCK, &lock)
}

fn args<'a>(share_access: u32, openhow: Openflag4<'a>, claim: OpenClaim4<'a>) -> Open4args<'a> {
    Open4args { seqid: 0, share_access, share_deny: 0, owner: OWNER, openhow, claim }
}
