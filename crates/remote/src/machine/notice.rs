use std::fmt;

use comity_proto::nfs4::Nfsstat4;

use crate::rpc::RpcRefusal;

/// Why a request has no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallFailure {
    /// It was tried for as long as the mount says (`soft`).
    TimedOut,
    /// The RPC layer of the server refuses it.
    Refused(RpcRefusal),
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
            Self::NotIntroduced(failure) => write!(f, "{failure}; it is asked again"),
        }
    }
}
