use comity_proto::nfs3::{Nfsstat3, Result3};
use comity_vfs::{Result, Status};
use comity_xdr::Malformed;

/// Converts an error of NFSv3 (RFC 1813, 2.6).
pub(super) const fn status(status: Nfsstat3) -> Status {
    match status {
        Nfsstat3::Perm => Status::Perm,
        Nfsstat3::NoEnt => Status::NoEnt,
        Nfsstat3::Ok | Nfsstat3::Io | Nfsstat3::Remote => Status::Io,
        Nfsstat3::NxIo => Status::NxIo,
        Nfsstat3::Acces => Status::Acces,
        Nfsstat3::Exist => Status::Exist,
        Nfsstat3::XDev => Status::XDev,
        Nfsstat3::NoDev => Status::NoDev,
        Nfsstat3::NotDir => Status::NotDir,
        Nfsstat3::IsDir => Status::IsDir,
        Nfsstat3::Inval => Status::Inval,
        Nfsstat3::FBig => Status::FBig,
        Nfsstat3::NoSpc => Status::NoSpc,
        Nfsstat3::RoFs => Status::RoFs,
        Nfsstat3::MLink => Status::MLink,
        Nfsstat3::NameTooLong => Status::NameTooLong,
        Nfsstat3::NotEmpty => Status::NotEmpty,
        Nfsstat3::DQuot => Status::DQuot,
        Nfsstat3::Stale => Status::Stale,
        Nfsstat3::BadHandle => Status::BadHandle,
        Nfsstat3::NotSync => Status::NotSync,
        Nfsstat3::BadCookie => Status::BadCookie,
        Nfsstat3::NotSupp => Status::NotSupp,
        Nfsstat3::TooSmall => Status::TooSmall,
        Nfsstat3::ServerFault => Status::ServerFault,
        Nfsstat3::BadType => Status::BadType,
        Nfsstat3::Jukebox => Status::Delay,
    }
}

/// Returns the body of a success.
///
/// # Errors
/// The server's error; [`Status::Io`] for a malformed result.
pub(super) fn ok<T, F>(read: std::result::Result<Result3<T, F>, Malformed>) -> Result<T> {
    match read.map_err(malformed)? {
        Result3::Ok(body) => Ok(body),
        Result3::Fail(failed, _) => Err(status(failed)),
    }
}

/// Logs a malformed result, and returns the error for it.
pub(super) fn malformed(reason: Malformed) -> Status {
    tracing::warn!(%reason, "a result of the server is malformed");
    Status::Io
}

/// Returns whether the server asks the client to try again later (NFS3ERR_JUKEBOX).
pub(super) fn is_put_off(results: &[u8]) -> bool {
    results.first_chunk() == Some(&(Nfsstat3::Jukebox as u32).to_be_bytes())
}
