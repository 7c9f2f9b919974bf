//! READ (RFC 8881, 18.22): the backend writes the bytes of a file into the reply, or the reply
//! refers to bytes of the file, which the shell sends.

use comity_export::{Node, View};
use comity_proto::nfs4::{Nfsstat4, Read4args, operation};
use comity_vfs::{Data, ReadInto, Status};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::limits::{BY_REFERENCE_FROM_BYTES, TRANSFER_BYTES_MAX};
use crate::stateid::may_read;
use crate::stop::Stop;

/// Bytes of the result before the data: the EOF flag and the length.
const HEAD_BYTES: usize = 4 + 4;

/// Bytes that a READ leaves free for the operations after it, if there are any. A session's reply
/// size is chosen so that one READ of the largest size fits.
const REST_BYTES: usize = 1024;

pub(super) fn read(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let Read4args { stateid, offset, count } = args.value()?;
    let opened = may_read(compound, &stateid)?;
    let (view, node) = compound.real(Nfsstat4::IsDir)?;
    let count = count.min(most(compound, reply));
    let by_reference_from = by_reference_from(compound, args);
    let (end, bytes) = (reply.word(), reply.word());
    let mut into = ReadInto { bytes: reply.bytes_mut(), by_reference_from, opened };
    let read = view.read(node, offset, count, &mut into);
    let read = read.map_err(|status| not_read(compound, view, node, status))?;
    let length = read.data.length();
    if let Data::File { file, offset, length } = &read.data {
        reply.file(file.clone(), *offset, *length);
    }
    reply.pad(length as usize);
    reply.set(end, read.eof.into());
    reply.set(bytes, length);
    Ok(())
}

/// Returns the most data that this reply can take, in bytes.
pub(super) fn most(compound: &Compound<'_>, reply: &Encoder) -> u32 {
    let rest = if compound.following == 0 { 0 } else { REST_BYTES };
    let room = compound.room(reply).saturating_sub(HEAD_BYTES + rest);
    TRANSFER_BYTES_MAX.min(u32::try_from(room).unwrap_or(u32::MAX) & !3)
}

/// Returns the fewest bytes for which the reply refers to the file. Such a reply cannot wait for a
/// barrier or be kept for a retry, so it is only used if no operation or only a GETATTR follows.
fn by_reference_from(compound: &Compound<'_>, args: &Decoder<'_>) -> u32 {
    let next = args.clone().value::<u32>();
    let is_alone = match compound.following {
        0 => true,
        1 => next == Ok(operation::GETATTR),
        _ => false,
    };
    let kept = !compound.pending_results.is_empty() || compound.sequencing.keeps_reply();
    if is_alone && !kept { BY_REFERENCE_FROM_BYTES } else { u32::MAX }
}

/// Returns the error for an object that has no data.
pub(super) fn not_read(
    compound: &Compound<'_>,
    view: &View<'_>,
    node: &Node,
    status: Status,
) -> Stop {
    match (status, view.getattr(node)) {
        (Status::Inval, Ok(attr)) => match compound.must_be_file(attr.file_type) {
            Err(why) => why.into(),
            Ok(()) => status.into(),
        },
        _ => status.into(),
    }
}
