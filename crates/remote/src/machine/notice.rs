use std::fmt;

use comity_proto::nfs4::Nfsstat4;

use crate::compound::OpFailure;
use crate::rpc::RpcRefusal;
use crate::server_handle::ServerHandle;

/// Why a request has no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// It was tried for as long as the mount says (`soft`).
    TimedOut,
    /// The RPC layer of the server refuses it.
    Refused(RpcRefusal),
    /// The state under which it was to be done is lost.
    StateLost,
    /// The server refuses it.
    Status(Nfsstat4),
    /// The client has ended.
    Ended,
}

/// Why a client cannot be introduced to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountFailure {
    /// It speaks none of the versions.
    Version,
    /// It refuses an operation.
    Status(&'static str, Nfsstat4),
    /// It refuses the call.
    Refused(RpcRefusal),
}

impl fmt::Display for MountFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version => f.write_str("the server speaks neither NFS 4.1 nor 4.2"),
            Self::Status(operation, status) => {
                write!(f, "the server answers {operation} with {status:?}")
            }
            Self::Refused(refusal) => refusal.fmt(f),
        }
    }
}

/// Something that whoever runs a mount should know; the shell writes it into the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// The server has not answered for a while.
    NotResponding,
    /// It answers again.
    RespondsAgain,
    /// The session has ended at the server, by this status; a new one is made.
    SessionLost(Nfsstat4),
    /// The server does not know this client any more: it has restarted, or the lease was over.
    ClientLost,
    /// A reply makes no sense.
    Nonsense(RpcRefusal),
    /// Recovery has ended: of so many opens and delegations all that could be was reclaimed.
    Reclaimed(usize),
    /// An open or a lock could not be reclaimed.
    NotReclaimed(ServerHandle, OpFailure),
    /// The server has taken state of a file away.
    StateRevoked(ServerHandle, Nfsstat4),
    /// Opens or locks of a file are lost; programs that use them get EIO.
    StateLost(ServerHandle),
    /// A delegation has ended without being given back.
    DelegationLost(ServerHandle),
    /// A recalled delegation was given back although data was kept from the server.
    ReturnedLate(ServerHandle),
    /// The server has moved the client's state elsewhere.
    LeaseMoved,
    /// The client could not be introduced again; it is tried again.
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
                "recovery has ended: {count} opens were reclaimed, but for those that the log names"
            ),
            Self::NotReclaimed(file, failure) => {
                write!(f, "{file:?}: an open or a lock could not be reclaimed ({failure:?})")
            }
            Self::StateRevoked(file, status) => {
                write!(f, "{file:?}: the server has taken its state away ({status:?})")
            }
            Self::StateLost(file) => {
                write!(f, "{file:?}: opens or locks are lost; programs that use them get EIO")
            }
            Self::DelegationLost(file) => write!(f, "{file:?}: the delegation is lost"),
            Self::ReturnedLate(file) => write!(
                f,
                "{file:?}: the delegation was recalled, and is given back before all was written"
            ),
            Self::LeaseMoved => f.write_str("the server says that it has moved state elsewhere"),
            Self::NotIntroduced(failure) => write!(f, "{failure}; it is asked again"),
        }
    }
}
