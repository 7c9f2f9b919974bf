//! SEEK (RFC 7862, 15.11): the offset of the next data or hole.

use comity_proto::nfs4::{DataContent4, Nfsstat4, Seek4args, Seek4resok};
use comity_vfs::{Seek, Status};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stateid::may_read;
use crate::stop::Stop;

const DATA: u32 = DataContent4::Data as u32;
const HOLE: u32 = DataContent4::Hole as u32;

pub(super) fn seek(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let Seek4args { stateid, offset, what } = args.value()?;
    may_read(compound, &stateid)?;
    let (view, node) = compound.real(Nfsstat4::IsDir)?;
    let attr = view.getattr(node)?;
    compound.must_be_file(attr.file_type)?;
    let what = match what {
        DATA => Seek::Data,
        HOLE => Seek::Hole,
        _ => return Err(Nfsstat4::UnionNotSupp.into()),
    };
    if offset >= attr.size {
        return Err(Nfsstat4::NxIo.into());
    }
    let found = match view.seek(node, offset, what) {
        Err(Status::NoData) => Seek4resok { eof: true, offset: attr.size },
        found => {
            let offset = found?;
            Seek4resok { eof: offset >= attr.size, offset }
        }
    };
    reply.value(&found);
    Ok(())
}
