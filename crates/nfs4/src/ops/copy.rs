//! COPY (RFC 7862, 15.2): copies on the server. A long copy becomes asynchronous if the client
//! allows that and can be called back. Otherwise a part is copied, and the client sends another
//! COPY for the rest.

use std::sync::Arc;

use comity_export::RpcPeer;
use comity_proto::nfs4::{
    Copy4args, Copy4resok, CopyRequirements4, Nfsstat4, StableHow4, Stateid4, WriteResponse4,
};
use comity_state::{BeginOffload, Client, Stateid};
use comity_xdr::{Decoder, Encoder};

use crate::async_copy::{CopyOrder, Copying, End};
use crate::compound::Compound;
use crate::copy_common::Transfer;
use crate::limits::{COPY_BYTES_MAX, COPY_LONG_BYTES};
use crate::state_context::on_wire;
use crate::stop::Stop;

pub(super) fn copy(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Copy4args<'_> = args.value()?;
    if !args.source_server.0.is_empty() {
        // With NOTSUPP, Linux would never send COPY again; that error is for servers without COPY
        // (RFC 7862, 11.2).
        return Err(Nfsstat4::OffloadDenied.into());
    }
    // The RFC lists no XDEV for COPY. But every Linux client then copies by READ and WRITE, while
    // older ones fail at OFFLOAD_DENIED if the source is on the same server.
    let transfer = Transfer::of(compound, (&args.src_stateid, &args.dst_stateid))?;
    if transfer.source == transfer.target {
        return Err(Nfsstat4::Inval.into());
    }
    let length = transfer.length((args.src_offset, args.dst_offset), args.count)?;
    let begun = match args.synchronous || length < COPY_LONG_BYTES {
        true => None,
        false => begin(compound, &transfer, &args, length)?,
    };
    let count = match begun {
        Some(_) => 0,
        None => {
            let Transfer { view, clearance, source, target, .. } = transfer;
            let ends = ((source, args.src_offset), (target, args.dst_offset));
            view.copy(clearance, ends.0, ends.1, length.min(COPY_BYTES_MAX))?.value
        }
    };
    let (committed, writeverf) = (StableHow4::Unstable, compound.nfs.verifier());
    let response = WriteResponse4 { callback_id: begun, count, committed, writeverf };
    let requirements = CopyRequirements4 { consecutive: true, synchronous: begun.is_none() };
    reply.value(&Copy4resok { response, requirements });
    Ok(())
}

/// Begins an asynchronous copy. Returns `None` if there is no room for it, or the client could not
/// be told of its end.
fn begin(
    compound: &Compound<'_>,
    transfer: &Transfer<'_, '_>,
    args: &Copy4args<'_>,
    length: u64,
) -> Result<Option<Stateid4>, Stop> {
    let memory = compound.nfs.memory();
    let (Some(copier), Some(client)) = (&memory.copier, compound.client()) else {
        return Ok(None);
    };
    let Some(asked_by) = compound.sequencing.answer().filter(|_| client.has_callbacks()) else {
        return Ok(None);
    };
    let Transfer { view, source, target, .. } = *transfer;
    let end = |node, stateid, offset| -> Result<End, Stop> {
        let stateid = lasting(compound.stateid_of(stateid)?);
        Ok(End { handle: view.seal(node), stateid, offset })
    };
    let ends = (
        end(source, &args.src_stateid, args.src_offset)?,
        end(target, &args.dst_stateid, args.dst_offset)?,
    );
    let (file, principal) = (view.key(target), compound.caller.principal);
    let wanted = BeginOffload { file, principal, asked_by: *asked_by };
    let begun = memory.engine.begin_offload(compound.now(), client, wanted);
    let Ok(stateid) = begun else { return Ok(None) };
    let copying = Copying::new(order(compound, (client, stateid), ends, length));
    match copier(Box::new(copying)) {
        Ok(()) => Ok(Some(on_wire(stateid))),
        Err(copying) => {
            copying.withdraw();
            Ok(None)
        }
    }
}

fn order(
    compound: &Compound<'_>,
    (client, stateid): (&Arc<Client>, Stateid),
    (source, target): (End, End),
    length: u64,
) -> CopyOrder {
    let nfs = compound.nfs;
    CopyOrder {
        engine: Arc::clone(&nfs.memory().engine),
        clock: nfs.memory().clock,
        exports: Arc::clone(nfs.exports()),
        visitor: RpcPeer::new(compound.visitor.peer()).over(compound.visitor.channel().clone()),
        credential: compound.credential.kept(),
        client: Arc::clone(client),
        caller: compound.caller,
        stateid,
        source,
        target,
        length,
        verifier: nfs.verifier(),
    }
}

/// Returns a stateid that stays valid when its state changes: the client may lock and upgrade
/// during the copy (RFC 8881, 8.2.2).
fn lasting(stateid: Stateid) -> Stateid {
    if stateid.special().is_some() { stateid } else { Stateid { seqid: 0, ..stateid } }
}
