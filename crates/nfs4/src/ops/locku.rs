//! LOCKU (RFC 8881, 18.12).

use comity_proto::nfs4::Locku4args;
use comity_xdr::{Decoder, Encoder};

use super::lock::range;
use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn locku(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<Locku4args>()?;
    let file = compound.key()?;
    let stateid = compound.stateid_of(&args.lock_stateid)?;
    compound.in_turn_of(&file, (&stateid, args.seqid), reply, &mut |compound, reply| {
        let bytes = range(args.offset, args.length)?;
        let left = compound.unlock(&stateid, (&file, bytes)).map_err(refused)?;
        reply.value(&compound.leave(left));
        Ok(())
    })
}
