use comity_proto::nfs4::Sessionid4;

use crate::calls::LinkPlace;

/// The purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Job {
    /// A caller waits for its reply.
    Verb,
    /// EXCHANGE_ID.
    Introduce,
    /// CREATE_SESSION.
    CreateSession,
    /// BIND_CONN_TO_SESSION of this connection and session.
    Bind(LinkPlace, Sessionid4),
    /// RECLAIM_COMPLETE.
    ReclaimComplete,
    /// A SEQUENCE that renews the lease.
    Renew,
}
