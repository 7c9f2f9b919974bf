//! The headers of replies: `reply_body` (RFC 5531, 9).

use comity_xdr::Encoder;

use crate::message::RPC_VERSION;
use crate::{AuthStat, Flavor, ReplyVerifier};

/// The verifier body of the reply to a probe for TLS (RFC 9289, 4.1).
const STARTTLS: &[u8; 8] = b"STARTTLS";

const REPLY: u32 = 1;
const MSG_ACCEPTED: u32 = 0;
const MSG_DENIED: u32 = 1;

/// Replies to a call that was accepted (`accept_stat`).
pub mod accepted {
    use super::{Encoder, Flavor, MSG_ACCEPTED, REPLY, ReplyVerifier, STARTTLS};

    /// The results follow.
    pub fn success(reply: &mut Encoder, xid: u32, verifier: &ReplyVerifier) {
        header(reply, xid, verifier, 0);
    }

    /// The peer may begin TLS. The call was NULL, so no results follow.
    pub fn start_tls(reply: &mut Encoder, xid: u32) {
        reply.words([xid, REPLY, MSG_ACCEPTED, Flavor::NONE.0, STARTTLS.len() as u32]);
        reply.raw(STARTTLS);
        reply.value(&0_u32);
    }

    /// The server has no such program.
    pub fn prog_unavail(reply: &mut Encoder, xid: u32, verifier: &ReplyVerifier) {
        header(reply, xid, verifier, 1);
    }

    /// The program supports only these versions.
    pub fn prog_mismatch(
        reply: &mut Encoder,
        xid: u32,
        verifier: &ReplyVerifier,
        low: u32,
        high: u32,
    ) {
        header(reply, xid, verifier, 2);
        reply.value(&low);
        reply.value(&high);
    }

    /// The program has no such procedure.
    pub fn proc_unavail(reply: &mut Encoder, xid: u32, verifier: &ReplyVerifier) {
        header(reply, xid, verifier, 3);
    }

    /// The arguments cannot be decoded.
    pub fn garbage_args(reply: &mut Encoder, xid: u32, verifier: &ReplyVerifier) {
        header(reply, xid, verifier, 4);
    }

    /// An internal error occurred.
    pub fn system_err(reply: &mut Encoder, xid: u32, verifier: &ReplyVerifier) {
        header(reply, xid, verifier, 5);
    }

    fn header(reply: &mut Encoder, xid: u32, verifier: &ReplyVerifier, accept_stat: u32) {
        match verifier {
            ReplyVerifier::Empty => {
                reply.words([xid, REPLY, MSG_ACCEPTED, Flavor::NONE.0, 0, accept_stat]);
            }
            ReplyVerifier::Filled(filled) => {
                reply.words([xid, REPLY, MSG_ACCEPTED]);
                reply.value(&filled.auth());
                reply.value(&accept_stat);
            }
        }
    }
}

/// Replies to a call that was denied (`reject_stat`).
pub mod denied {
    use super::{AuthStat, Encoder, MSG_DENIED, REPLY, RPC_VERSION};

    /// Only RPC version 2 is supported.
    pub fn rpc_mismatch(reply: &mut Encoder, xid: u32) {
        for word in [xid, REPLY, MSG_DENIED, 0, RPC_VERSION, RPC_VERSION] {
            reply.value(&word);
        }
    }

    /// The credential is refused.
    pub fn auth_error(reply: &mut Encoder, xid: u32, why: AuthStat) {
        for word in [xid, REPLY, MSG_DENIED, 1] {
            reply.value(&word);
        }
        reply.value(&why);
    }
}
