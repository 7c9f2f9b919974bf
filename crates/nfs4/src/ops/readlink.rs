//! READLINK (RFC 8881, 18.24): the target of a symbolic link.

use comity_proto::nfs4::Nfsstat4;
use comity_vfs::Status;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn readlink(
    compound: &mut Compound<'_>,
    _: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let other = if compound.minor == 0 { Nfsstat4::Inval } else { Nfsstat4::WrongType };
    let (view, node) = compound.real(other)?;
    let (target, _) = view.readlink(node).map_err(|status| match status {
        Status::Inval => other.into(),
        status => Stop::from(status),
    })?;
    reply.opaque(&target);
    Ok(())
}
