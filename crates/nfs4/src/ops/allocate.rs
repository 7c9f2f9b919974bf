//! ALLOCATE and DEALLOCATE (RFC 7862, 15.1, 15.4): reserve or free the space of a range of a file.

use comity_coherence::Clearance;
use comity_export::{Node, View};
use comity_proto::nfs4::{Nfsstat4, Range4args};
use comity_vfs::{Change, Result as FsResult, Wire};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::copy_common::must_have_blocks;
use crate::stateid::may_write;
use crate::stop::Stop;

type Verb<'a> = fn(&View<'a>, Clearance<'_>, &Node, u64, u64) -> FsResult<Change<Wire>>;

pub(super) fn allocate<'a>(
    compound: &mut Compound<'a>,
    args: &mut Decoder<'a>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    change(compound, args, View::allocate)
}

pub(super) fn deallocate<'a>(
    compound: &mut Compound<'a>,
    args: &mut Decoder<'a>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    change(compound, args, View::deallocate)
}

fn change<'a>(
    compound: &mut Compound<'a>,
    args: &mut Decoder<'a>,
    verb: Verb<'a>,
) -> Result<(), Stop> {
    let Range4args { stateid, offset, length } = args.value()?;
    let (_, clearance) = may_write(compound, &stateid)?;
    let (view, node) = compound.real(Nfsstat4::WrongType)?;
    must_have_blocks(view.getattr(node)?.file_type)?;
    if length == 0 {
        return Err(Nfsstat4::Inval.into());
    }
    verb(view, clearance, node, offset, length)?;
    let barrier = view.barrier(node);
    compound.behind(Some(barrier));
    Ok(())
}
