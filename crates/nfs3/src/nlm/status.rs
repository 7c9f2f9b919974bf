//! The status numbers of failures.

use comity_proto::nlm::{Netobj, Nlm4Res, Nlm4Stats};
use comity_rpc::Done;
use comity_state::{Error, LockRefusal};
use comity_vfs::Status;
use comity_xdr::Encoder;

use crate::reply::Answer;
use crate::request::Stop;

/// Answers a call: its cookie, and what came of it.
pub(super) fn answer(
    reply: &mut Encoder,
    cookie: Netobj<'_>,
    (stat, export): (Nlm4Stats, Option<u32>),
) -> Answer {
    reply.value(&Nlm4Res { cookie, stat });
    Answer::new(Done { status: stat as u32, export })
}

/// Why a caller was not let in, or may not.
pub(super) fn refused(status: Status) -> Nlm4Stats {
    match status {
        Status::Stale | Status::BadHandle => Nlm4Stats::StaleFh,
        Status::RoFs => Nlm4Stats::Rofs,
        Status::FBig => Nlm4Stats::Fbig,
        Status::NotSupp => Nlm4Stats::DeniedNolocks,
        Status::Delay => Nlm4Stats::DeniedGracePeriod,
        Status::Acces | Status::Perm => Nlm4Stats::Denied,
        _ => Nlm4Stats::Failed,
    }
}

/// The same of a request that stopped before it came to anything; bad credentials and arguments are
/// the RPC's own to tell.
pub(super) fn stopped(stop: Stop) -> Result<Nlm4Stats, Stop> {
    match stop {
        Stop::Status(status) => Ok(refused(status)),
        other => Err(other),
    }
}

/// Why a lock was not granted. A client asks again after a grace period, so that is what it is told
/// while a delegation is being recalled (there is no other word for "later" that it would heed).
pub(super) const fn denied(refusal: &LockRefusal) -> Nlm4Stats {
    match refusal {
        LockRefusal::Denied { .. } => Nlm4Stats::Denied,
        LockRefusal::Error(error) => failed(*error),
    }
}

/// Why a lock or share was not granted.
pub(super) const fn failed(error: Error) -> Nlm4Stats {
    match error {
        Error::Grace | Error::Delay => Nlm4Stats::DeniedGracePeriod,
        Error::ShareDenied | Error::NoGrace | Error::ReclaimBad => Nlm4Stats::Denied,
        Error::Resource | Error::Nospc => Nlm4Stats::DeniedNolocks,
        _ => Nlm4Stats::Failed,
    }
}
