use std::fmt;

use comity_proto::nfs4::Nfsstat4;

use crate::compound::OpFailure;
use crate::rpc::RpcRefusal;
use crate::server_handle::ServerHandle;

/// The reason why a request has no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// It timed out as often as the mount allows (`soft`).
    TimedOut,
    /// The RPC layer of the server refused it.
    Refused(RpcRefusal),
    /// Its open or delegation is lost.
    StateLost,
    /// The server returned this error.
    Status(Nfsstat4),
    /// The client has ended.
    Ended,
}

/// The reason why a server does not accept a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountFailure {
    /// It supports none of the versions.
    Version,
    /// An operation failed with this error.
    Status(&'static str, Nfsstat4),
    /// It refused the call.
    Refused(RpcRefusal),
}

impl fmt::Display for MountFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version => f.write_str("the server speaks neither NFS 4.1 nor 4.2"),
            Self::Status(operation, status) => {
                write!(f, "{operation} failed with {status:?}")
            }
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

/// A message for the operator of a mount; the shell logs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The server has not answered for a while.
    NotResponding,
    /// It answers again.
    RespondsAgain,
    /// The session has ended at the server, by this status; the client makes a new one.
    SessionLost(Nfsstat4),
    /// The server no longer knows this client: it has restarted, or the lease has expired.
    ClientLost,
    /// A reply is malformed.
    Nonsense(RpcRefusal),
    /// Recovery has ended. The number is that of reclaimed opens and delegations.
    Reclaimed(usize),
    /// An open or a lock could not be reclaimed.
    NotReclaimed(ServerHandle, OpFailure),
    /// The server has revoked state of a file.
    StateRevoked(ServerHandle, Nfsstat4),
    /// Opens or locks of a file are lost; programs that use them get EIO.
    StateLost(ServerHandle),
    /// A delegation has ended without being given back.
    DelegationLost(ServerHandle),
    /// A recalled delegation was given back before all modified data was written.
    ReturnedLate(ServerHandle),
    /// The server reports that the client's state has moved to another server.
    LeaseMoved,
    /// The client could not be introduced again; it will retry.
    NotIntroduced(MountFailure),
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotResponding => f.write_str("the server is not responding, still trying"),
            Self::RespondsAgain => f.write_str("the server responds again"),
            Self::SessionLost(status) => {
                write!(f, "the session ended at the server ({status:?}); a new one is made")
            }
            Self::ClientLost => f.write_str(
                "the server does not know this client: it restarted, or the lease was over; opens, \
                 locks and delegations are reclaimed",
            ),
            Self::Nonsense(refusal) => write!(f, "a call failed: {refusal}"),
            Self::Reclaimed(count) => write!(
                f,
                "recovery has ended: {count} opens were reclaimed; the log names the others"
            ),
            Self::NotReclaimed(file, failure) => {
                write!(f, "{file:?}: an open or a lock could not be reclaimed ({failure:?})")
            }
            Self::StateRevoked(file, status) => {
                write!(f, "{file:?}: the server has revoked its state ({status:?})")
            }
            Self::StateLost(file) => {
                write!(f, "{file:?}: opens or locks are lost; programs that use them get EIO")
            }
            Self::DelegationLost(file) => write!(f, "{file:?}: the delegation is lost"),
            Self::ReturnedLate(file) => write!(
                f,
                "{file:?}: the delegation was recalled, and is given back before all data was \
                 written"
            ),
            Self::LeaseMoved => f.write_str("the server says that it has moved state elsewhere"),
            Self::NotIntroduced(failure) => write!(f, "{failure}; the client will retry"),
        }
    }
}
