//! TEST_MSG, LOCK_MSG, CANCEL_MSG and UNLOCK_MSG. The reply to such a call is empty; its
//! results are sent by a call of the server, TEST_RES and the like, whose arguments are the
//! results of TEST and the like.

use std::net::IpAddr;

use comity_proto::nlm::procedure;
use comity_xdr::Encoder;

use super::Nlm;
use crate::reply::Answer;
use crate::request::{Request, Stop};
use crate::table::Verb;

/// An answer that is a call of NLM. It has no results of its own, and may be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The host that is answered.
    pub host: IpAddr,
    /// The address of the server that the message came to, if that is known.
    pub source: Option<IpAddr>,
    /// The procedure ([`comity_proto::nlm::procedure`]).
    pub procedure: u32,
    /// Its arguments, in XDR.
    pub arguments: Vec<u8>,
}

pub(super) fn test(nlm: &Nlm, request: &Request<'_>, _: &mut Encoder) -> Result<Answer, Stop> {
    told(nlm, request, super::test::test, procedure::TEST_RES)
}

pub(super) fn lock(nlm: &Nlm, request: &Request<'_>, _: &mut Encoder) -> Result<Answer, Stop> {
    told(nlm, request, super::lock::lock, procedure::LOCK_RES)
}

pub(super) fn cancel(nlm: &Nlm, request: &Request<'_>, _: &mut Encoder) -> Result<Answer, Stop> {
    told(nlm, request, super::cancel::cancel, procedure::CANCEL_RES)
}

pub(super) fn unlock(nlm: &Nlm, request: &Request<'_>, _: &mut Encoder) -> Result<Answer, Stop> {
    told(nlm, request, super::unlock::unlock, procedure::UNLOCK_RES)
}

/// Does a verb, and queues its results for the host.
fn told(nlm: &Nlm, request: &Request<'_>, verb: Verb<Nlm>, procedure: u32) -> Result<Answer, Stop> {
    let mut results = Encoder::new();
    let answer = verb(nlm, request, &mut results)?;
    let (host, source) = (request.visitor.peer().ip().to_canonical(), request.visitor.local());
    let message = Message { host, source, procedure, arguments: results.bytes().to_vec() };
    // The call of the server would not be encrypted.
    let is_tls = request.visitor.channel().is_tls();
    if let Some(messages) = nlm.messages.as_ref().filter(|_| !is_tls) {
        // A host that gets no answer asks again.
        let _ = messages.try_send(message);
    }
    Ok(answer)
}
