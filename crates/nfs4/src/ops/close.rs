//! CLOSE (RFC 8881, 18.2).

use comity_proto::nfs4::Close4args;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn close(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<Close4args>()?;
    let file = compound.key()?;
    let stateid = compound.stateid_of(&args.open_stateid)?;
    compound.in_turn_of(&file, (&stateid, args.seqid), reply, &mut |compound, reply| {
        let closed = compound.engine().close(compound.at(&file), &stateid).map_err(refused)?;
        reply.value(&compound.leave(closed));
        Ok(())
    })
}
