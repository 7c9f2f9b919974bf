//! DESTROY_SESSION (RFC 8881, 18.37). A COMPOUND may destroy its own session only by its last
//! operation.

use comity_proto::nfs4::{Nfsstat4, Sessionid4};
use comity_state::SessionId;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::sequencing::Sequencing;
use crate::stop::{Stop, refused};

pub(super) fn destroy_session(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let session = SessionId(args.value::<Sessionid4>()?);
    if let Sequencing::Sequenced(sequenced) = &compound.sequencing
        && sequenced.ticket.as_ref().is_some_and(|ticket| ticket.session().id() == session)
        && compound.following > 0
    {
        return Err(Nfsstat4::NotOnlyOp.into());
    }
    let asked = (compound.connection(), compound.caller);
    compound.engine().destroy_session(&session, asked).map_err(refused)
}
