//! FREE_ALL: a host has started anew and holds nothing. It speaks for itself only: whatever name it
//! gives, what is freed is what its own address held.

use comity_proto::nlm::Nlm4Notify;
use comity_rpc::Done;
use comity_xdr::Encoder;

use super::{Nlm, name_of};
use crate::answer::Answer;
use crate::request::{Request, Stop};

pub(super) fn free_all(nlm: &Nlm, request: &Request<'_>, _: &mut Encoder) -> Result<Answer, Stop> {
    request.arguments::<Nlm4Notify<'_>>()?;
    nlm.engine.forget_host(nlm.now(), &name_of(request.visitor.peer().ip()));
    Ok(Answer::new(Done::default()))
}
