//! LAYOUTCOMMIT (RFC 8881, 18.42): a client has written to data servers, and the size and the times
//! of the file follow. The client's own time is not used, so that times of several clients are in
//! order.

use comity_coherence::Act;
use comity_proto::nfs4::{Layoutcommit4args, Layoutcommit4resok, Nfsstat4};
use comity_state::ByteRange;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::layout_kind::check_type;
use crate::stop::{Stop, refused};

pub(super) fn layoutcommit(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Layoutcommit4args<'_> = args.value()?;
    let (view, node) = compound.real(Nfsstat4::Inval)?;
    let before = view.getattr(node)?;
    compound.must_be_file(before.file_type)?;
    check_type(args.layoutupdate.layout_type, view.layout_kind())?;
    if args.reclaim {
        // Nothing tells after a restart who had a layout. The client writes its data again, through
        // this server.
        return Err(Nfsstat4::NoGrace.into());
    }
    let end = end(&args)?;
    let range = range(&args)?;
    let (stateid, file) = (compound.stateid_of(&args.stateid)?, view.key(node));
    let checked = compound.engine().check_layoutcommit(compound.at(&file), &stateid, range);
    checked.map_err(refused)?;
    let clearance = compound.asker(None).clear((view, node), Act::Write)?;
    let after = view.note_written(clearance, node, end)?;
    // A layout that has ended meanwhile has its size asked for in any case.
    let _ = compound.engine().layout_committed(compound.at(&file), &stateid);
    let newsize = (after.size != before.size).then_some(after.size);
    reply.value(&Layoutcommit4resok { newsize });
    let barrier = view.change_barrier(node, None);
    compound.behind(barrier);
    Ok(())
}

/// The offset after the last byte that was written.
fn end(args: &Layoutcommit4args<'_>) -> Result<Option<u64>, Stop> {
    let Some(last) = args.last_write_offset else { return Ok(None) };
    let end = last.checked_add(1).ok_or(Nfsstat4::Inval)?;
    // The server's own files end at what an i64 counts.
    if i64::try_from(end).is_err() { Err(Nfsstat4::FBig.into()) } else { Ok(Some(end)) }
}

/// The range of the layout. A length of zero stands for none in particular (RFC 8881, 18.42.3).
fn range(args: &Layoutcommit4args<'_>) -> Result<ByteRange, Stop> {
    let last = args.last_write_offset.unwrap_or(args.offset);
    match args.length {
        0 => Ok(ByteRange { first: args.offset.min(last), last }),
        length => ByteRange::new(args.offset, length).ok_or(Nfsstat4::Inval.into()),
    }
}
