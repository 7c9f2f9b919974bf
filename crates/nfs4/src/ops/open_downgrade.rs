//! OPEN_DOWNGRADE (RFC 8881, 18.18): reduces the access or the deny mode of an open.

use comity_proto::nfs4::{OpenDowngrade4args, share};
use comity_state::Share;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn open_downgrade(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<OpenDowngrade4args>()?;
    let file = compound.key()?;
    let stateid = compound.stateid_of(&args.open_stateid)?;
    // The bits for delegations have no meaning in this operation.
    let wants = if compound.minor > 0 { share::WANT_MASK } else { 0 };
    let wanted = Share { access: args.share_access & !wants, deny: args.share_deny };
    compound.in_turn_of(&file, (&stateid, args.seqid), reply, &mut |compound, reply| {
        let left = compound.engine().open_downgrade(compound.at(&file), &stateid, wanted);
        let left = left.map_err(refused)?;
        reply.value(&compound.leave(left));
        Ok(())
    })
}
