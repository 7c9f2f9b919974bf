//! LAYOUTSTATS (RFC 7862, 15.7): a client reports what it has read and written at a data server.
//! Linux does so unasked. The report is checked and changes nothing.

use comity_proto::nfs4::flexible_files::{FfLayoutupdate4, Layoutstats4args};
use comity_vfs::LayoutKind;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::layout_kind::kind_of;
use crate::stop::{Stop, refused};

pub(super) fn layoutstats(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let args: Layoutstats4args<'_> = args.value()?;
    if kind_of(args.layoutupdate.layout_type)? == LayoutKind::FlexibleFiles {
        Decoder::whole::<FfLayoutupdate4<'_>>(args.layoutupdate.body.0)?;
    }
    let (stateid, file) = (compound.stateid_of(&args.stateid)?, compound.key()?);
    let checked = compound.engine().check_layout(compound.at(&file), &stateid);
    checked.map(drop).map_err(refused)
}
