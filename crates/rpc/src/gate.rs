use std::sync::Arc;

use crate::{AuthStat, CallHeader, ReplyVerifier};

/// Decides which peers may call anything but procedure NULL. A [`crate::Dispatcher`] asks it before
/// the replay cache and before any program, so that no program can forget to ask it. `V` is the
/// type of the server's data about the peer.
pub trait Gate<V: ?Sized>: Send + Sync {
    /// Returns whether this peer may call. It must not block, because calls of other peers wait
    /// meanwhile.
    fn admits(&self, visitor: &V) -> Admission;

    /// Returns whether this peer may make this call.
    #[inline]
    fn admits_call(&self, visitor: &V, call: &CallHeader<'_>) -> Admission {
        let _ = call;
        self.admits(visitor)
    }

    /// Returns the verifier of the reply to a call of this peer. Replies that deny the call
    /// (MSG_DENIED) have none.
    #[inline]
    fn reply_verifier(&self, call: &CallHeader<'_>, visitor: &V) -> ReplyVerifier {
        let _ = (call, visitor);
        ReplyVerifier::Empty
    }

    /// Returns a number that distinguishes peers of one address by what they have proved: a reply
    /// in the replay cache is given only to a peer with the same number.
    #[inline]
    fn proof_of(&self, visitor: &V) -> u64 {
        let _ = visitor;
        0
    }

    /// Returns why this peer was refused, for the log. It is called only if the refusal is logged.
    fn refusal_reason(&self, visitor: &V, refusal: GateRefusal) -> String {
        let _ = visitor;
        format!("the gate does not let it call ({:?})", refusal.why)
    }

    /// Returns whether this peer may begin TLS on its connection now (RFC 9289, 4.1). It is called
    /// only for a probe for TLS.
    fn starts_tls(&self, visitor: &V) -> bool {
        let _ = visitor;
        false
    }
}

/// The decision of a [`Gate`] about a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The peer may call.
    Admitted,
    /// The call is answered MSG_DENIED with AUTH_ERROR and this reason (RFC 5531, 9).
    Refused(AuthStat),
    /// The answer is not known yet, because the peer's name is still being looked up.
    Undecided,
}

/// A call that a [`Gate`] has refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GateRefusal {
    /// The program that the peer called.
    pub program: u32,
    /// The reason in the reply.
    pub why: AuthStat,
}

/// A gate that admits everybody: for programs without a list of clients.
#[derive(Debug, Clone, Copy, Default)]
pub struct OpenGate;

impl<V: ?Sized> Gate<V> for OpenGate {
    #[inline]
    fn admits(&self, _: &V) -> Admission {
        Admission::Admitted
    }
}

impl<V: ?Sized, G: Gate<V> + ?Sized> Gate<V> for Arc<G> {
    #[inline]
    fn admits(&self, visitor: &V) -> Admission {
        (**self).admits(visitor)
    }

    #[inline]
    fn admits_call(&self, visitor: &V, call: &CallHeader<'_>) -> Admission {
        (**self).admits_call(visitor, call)
    }

    #[inline]
    fn reply_verifier(&self, call: &CallHeader<'_>, visitor: &V) -> ReplyVerifier {
        (**self).reply_verifier(call, visitor)
    }

    #[inline]
    fn proof_of(&self, visitor: &V) -> u64 {
        (**self).proof_of(visitor)
    }

    fn refusal_reason(&self, visitor: &V, refusal: GateRefusal) -> String {
        (**self).refusal_reason(visitor, refusal)
    }

    fn starts_tls(&self, visitor: &V) -> bool {
        (**self).starts_tls(visitor)
    }
}
