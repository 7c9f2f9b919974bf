//! GET_DIR_DELEGATION (RFC 8881, 18.39): the server delegates no directories, and says so. New
//! clients send this operation unasked, and stop using a session that answers NOTSUPP.

use comity_proto::nfs4::{GetDirDelegation4args, GetDirDelegation4res};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn get(
    _: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    args.value::<GetDirDelegation4args>()?;
    reply.value(&GetDirDelegation4res::Unavail { will_signal_deleg_avail: false });
    Ok(())
}
