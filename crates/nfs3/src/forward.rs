//! Calls about an export that has moved to another server. NFSv3 cannot refer a client, so such
//! calls may be forwarded: the other server answers them, and this one passes the results on.

use comity_export::{Referred, RpcPeer};
use comity_rpc::{AuthStat, Call, Done, Outcome, Repeat};
use comity_xdr::Encoder;

use crate::system_port::is_system;

/// Forwards calls to the servers to which exports have moved.
pub trait CallForwarder: Send + Sync {
    /// Returns whether the calls of clients of this export are forwarded now.
    fn forwards(&self, referred: Referred) -> bool;

    /// Forwards a call of a client, and waits for the answer. This may take seconds.
    fn forward(&self, referred: Referred, client: &RpcPeer, call: &Call<'_>) -> Forwarded;

    /// Tells all servers to which calls are forwarded now that a host has begun anew and holds no
    /// lock. Returns whether all of them have answered.
    fn forward_to_all(&self, host: &RpcPeer, call: &Call<'_>) -> bool;
}

/// The outcome of a call that was to be forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Forwarded {
    /// The results, in XDR, as they follow the header of a reply.
    Answered(Vec<u8>),
    /// The other server refuses the client.
    Refused,
    /// The other server failed.
    Failed,
    /// The call was not sent.
    NotSent,
    /// The call was sent, and no answer has come: it may have been executed.
    NotAnswered,
}

/// Forwards a call, and appends the results. `put_off` answers a call that was not executed, or
/// that may be executed again.
#[cold]
pub(crate) fn forward(
    forwarder: Option<&dyn CallForwarder>,
    referred: Referred,
    (client, call, repeat): (&RpcPeer, &Call<'_>, Repeat),
    reply: &mut Encoder,
    put_off: impl FnOnce(&mut Encoder) -> Outcome,
) -> Outcome {
    let forwarded = forwarder.map(|forwarder| forwarder.forward(referred, client, call));
    match forwarded.unwrap_or(Forwarded::NotSent) {
        Forwarded::Answered(results) => {
            reply.raw(&results);
            // The other server counts the call by its status and its export.
            Outcome::Done(Done::default())
        }
        Forwarded::Refused => Outcome::Denied(AuthStat::TooWeak),
        Forwarded::Failed => Outcome::SystemErr,
        Forwarded::NotSent => put_off(reply),
        Forwarded::NotAnswered if repeat == Repeat::Harmless => put_off(reply),
        // The client sends the call again, and the other server recognizes it.
        Forwarded::NotAnswered => Outcome::Silence,
    }
}

/// Tells the other servers that a host has begun anew, unless it is one of them that calls. Returns
/// whether all have answered; otherwise the host has to call again.
pub(crate) fn has_told(
    forwarder: Option<&dyn CallForwarder>,
    (host, call): (&RpcPeer, &Call<'_>),
) -> bool {
    let forwarder = forwarder.filter(|_| is_system(host) && !host.is_confined());
    forwarder.is_none_or(|forwarder| forwarder.forward_to_all(host, call))
}
