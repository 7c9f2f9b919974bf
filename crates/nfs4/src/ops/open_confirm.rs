//! OPEN_CONFIRM (RFC 7530, 16.18): a 4.0 client confirms an open-owner that the server did not
//! know.

use comity_proto::nfs4::OpenConfirm4args;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn open_confirm(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<OpenConfirm4args>()?;
    let file = compound.key()?;
    let stateid = compound.stateid_of(&args.open_stateid)?;
    compound.in_turn_of(&file, (&stateid, args.seqid), reply, &mut |compound, reply| {
        let confirmed = compound.engine().open_confirm(compound.at(&file), &stateid);
        let confirmed = confirmed.map_err(refused)?;
        reply.value(&compound.leave(confirmed));
        Ok(())
    })
}
