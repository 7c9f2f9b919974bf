//! READDIR (RFC 8881, 18.23): entries of a directory with their attributes, page by page.

use comity_proto::nfs4::{Nfsstat4, Readdir4args};
use comity_xdr::{Decoder, Encoder};

use crate::attributes::READABLE_NOT;
use crate::compound::Compound;
use crate::listing::list;
use crate::stop::Stop;

pub(super) fn readdir(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Readdir4args = args.value()?;
    if !args.attr_request.and(&READABLE_NOT).is_empty() {
        return Err(Nfsstat4::Inval.into());
    }
    list(compound, &args, reply)?;
    if let Ok((view, dir)) = compound.real(Nfsstat4::NotDir) {
        compound.note_look(view, dir);
    }
    Ok(())
}
