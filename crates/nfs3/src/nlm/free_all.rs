//! FREE_ALL: a host has restarted and holds no lock. A host can free its own locks only: the
//! name in the call is ignored, and the locks of the sender's address are freed. The call must
//! come from a port below 1024, so that a user of the host cannot free the locks of others.

use comity_coherence::host_name;
use comity_proto::nlm::Nlm4Notify;
use comity_rpc::Done;
use comity_xdr::Encoder;

use super::Nlm;
use crate::reply::Answer;
use crate::request::{Request, Stop};
use crate::system_port::is_system;

pub(super) fn free_all(nlm: &Nlm, request: &Request<'_>, _: &mut Encoder) -> Result<Answer, Stop> {
    request.arguments::<Nlm4Notify<'_>>()?;
    if is_system(request.visitor) {
        nlm.engine.forget_host(nlm.now(), &host_name(request.visitor));
    }
    Ok(Answer::new(Done::default()))
}
