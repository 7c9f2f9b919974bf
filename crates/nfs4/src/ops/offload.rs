//! OFFLOAD_STATUS and OFFLOAD_CANCEL (RFC 7862, 15.9, 15.8): report the progress of an asynchronous
//! copy into the current file, or cancel the copy.

use comity_proto::nfs4::{Nfsstat4, OffloadStatus4resok, Stateid4};
use comity_state::{Client, FileKey, Stateid};
use comity_xdr::{Decoder, Encoder, Malformed};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn status(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let (client, file, stateid) = named(compound, args)?;
    let found = compound.engine().offload_status(client, &file, &stateid).map_err(refused)?;
    let complete = found.end.map(|end| known(end.status)).transpose()?;
    reply.value(&OffloadStatus4resok { count: found.copied, complete });
    Ok(())
}

pub(super) fn cancel(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let (client, file, stateid) = named(compound, args)?;
    let who = (client, &compound.caller);
    compound.engine().cancel_offload(who, &file, &stateid).map_err(refused)
}

/// Returns the copy that a stateid names, and its client. Special stateids do not name a copy (RFC
/// 7862, 4.8).
fn named<'c>(
    compound: &'c Compound<'_>,
    args: &mut Decoder<'_>,
) -> Result<(&'c Client, FileKey, Stateid), Stop> {
    let Stateid4 { seqid, other } = args.value()?;
    let client: &Client = compound.client().ok_or(Nfsstat4::BadStateid)?;
    Ok((client, compound.key()?, Stateid { seqid, other }))
}

/// Returns the status that a stored number stands for.
fn known(status: u32) -> Result<Nfsstat4, Malformed> {
    Decoder::whole(&status.to_be_bytes())
}
