//! GETXATTR (RFC 8276, 8.4.1): the value of an extended attribute of the namespace `user`.

use comity_proto::nfs4::{Nfsstat4, Xattrkey4};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn getxattr(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let name: Xattrkey4<'_> = args.value()?;
    let (view, node) = compound.real(Nfsstat4::NotSupp)?;
    let value = view.getxattr(node, name.0)?;
    if value.len() + 8 > compound.room(reply) {
        return Err(compound.sequencing.too_big().into());
    }
    reply.opaque(&value);
    Ok(())
}
