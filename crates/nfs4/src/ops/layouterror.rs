//! LAYOUTERROR (RFC 7862, 15.6): a client has met errors at data servers.

use comity_proto::nfs4::flexible_files::Layouterror4args;
use comity_xdr::{Decoder, Encoder};

use super::flexible_files::note_errors;
use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn layouterror(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let args: Layouterror4args = args.value()?;
    let (stateid, file) = (compound.stateid_of(&args.stateid)?, compound.key()?);
    let checked = compound.engine().check_layout(compound.at(&file), &stateid);
    note_errors(compound, &[args], checked.map_err(refused)?)
}
