//! The status numbers of failures.

use comity_proto::nlm::{Netobj, Nlm4Res, Nlm4Stats};
use comity_rpc::Done;
use comity_state::{Error, LockRefusal};
use comity_vfs::Status;
use comity_xdr::Encoder;

use crate::reply::Answer;
use crate::request::Stop;

/// Appends a reply: the cookie of the call, and a status.
pub(super) fn answer(
    reply: &mut Encoder,
    cookie: Netobj<'_>,
    (stat, export): (Nlm4Stats, Option<u32>),
) -> Answer {
    reply.value(&Nlm4Res { cookie, stat });
    Answer::new(Done { status: stat as u32, export })
}

/// Returns the status for a caller that was not let in or has no right.
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

/// Returns the status for a request that stopped early. Bad credentials and arguments are
/// reported by RPC instead.
pub(super) fn stopped(stop: Stop) -> Result<Nlm4Stats, Stop> {
    match stop {
        Stop::Status(status) => Ok(refused(status)),
        Stop::Referred => Ok(Nlm4Stats::StaleFh),
        other => Err(other),
    }
}

/// Returns the status of a lock that was refused. While a delegation is being recalled it is
/// that of a grace period: after it a client asks again, and NLM has no other status with that
/// effect.
pub(super) const fn denied(refusal: &LockRefusal) -> Nlm4Stats {
    match refusal {
        LockRefusal::Denied { .. } => Nlm4Stats::Denied,
        LockRefusal::Error(error) => failed(*error),
    }
}

/// Returns the status of a lock or share that failed.
pub(super) const fn failed(error: Error) -> Nlm4Stats {
    match error {
        Error::Grace | Error::Delay => Nlm4Stats::DeniedGracePeriod,
        Error::ShareDenied | Error::NoGrace | Error::ReclaimBad => Nlm4Stats::Denied,
        Error::Resource | Error::Nospc => Nlm4Stats::DeniedNolocks,
        _ => Nlm4Stats::Failed,
    }
}
