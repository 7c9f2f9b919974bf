//! LAYOUTGET (RFC 8881, 18.43): hands out the distribution of a file over data servers, with the
//! handles by which the client reads and writes there. Every layout is of the whole file.

use comity_export::{Node, View};
use comity_proto::nfs4::files_layout::FileLayout4;
use comity_proto::nfs4::{
    Layout4, LayoutContent4, Layoutget4args, Layoutget4resok, Layoutiomode4, Nfsstat4,
};
use comity_state::{ByteRange, LayoutIomode};
use comity_vfs::{Access, Distribution, FileType, Striping};
use comity_xdr::{Counted, Decoder, Encoder, Opaque, encoded};

use super::flexible_files;
use crate::compound::Compound;
use crate::layout_kind::{check_type, type_of};
use crate::stop::{Stop, refused};

/// Bytes of one segment before its body: offset, length, iomode, type and the length of the body.
const HEAD_BYTES: usize = 8 + 8 + 4 + 4 + 4;

pub(super) fn layoutget(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Layoutget4args = args.value()?;
    let (view, node) = compound.real(Nfsstat4::Inval)?;
    if view.getattr(node)?.file_type != FileType::Regular {
        return Err(Nfsstat4::WrongType.into());
    }
    check_type(args.layout_type, view.layout_kind())?;
    let iomode = iomode(&args)?;
    may(view, node, iomode)?;
    let (stateid, file) = (compound.stateid_of(&args.stateid)?, view.key(node));
    let engine = compound.engine();
    // A refused request must not leave files on data servers, so the stateid is checked first.
    let checked = engine.check_layoutget(compound.at(&file), &stateid, iomode);
    checked.map_err(refused)?;
    let distribution = view.distribution(node, iomode == LayoutIomode::ReadWrite)?;
    let distribution = distribution.ok_or(Nfsstat4::LayoutUnavailable)?;
    let layout_type = type_of(distribution.kind());
    let body = body(&distribution);
    if body.len() + HEAD_BYTES > args.maxcount as usize {
        return Err(Nfsstat4::TooSmall.into());
    }
    let granted = engine.layoutget(compound.at(&file), &stateid, (iomode, ByteRange::ALL));
    let granted = granted.map_err(refused)?;
    if !view.is_current(node, &distribution) {
        // The recall of layouts that name a broken mirror may have missed this one.
        let _ = engine.layoutreturn(compound.at(&file), &granted, (None, ByteRange::ALL));
        return Err(Nfsstat4::Delay.into());
    }
    let stateid = compound.leave(granted);
    let content = LayoutContent4 { layout_type, body: Opaque(&body) };
    let iomode = args.iomode;
    let layout = Counted(vec![Layout4 { offset: 0, length: u64::MAX, iomode, content }]);
    reply.value(&Layoutget4resok { return_on_close: true, stateid, layout });
    Ok(())
}

/// Checks the arguments; returns the iomode.
fn iomode(args: &Layoutget4args) -> Result<LayoutIomode, Stop> {
    let reaches_end = args.length == u64::MAX;
    let overflows = args.offset.checked_add(args.length).is_none() && !reaches_end;
    match args.iomode {
        _ if args.length == 0 || args.length < args.minlength || overflows => {
            Err(Nfsstat4::Inval.into())
        }
        Layoutiomode4::Read => Ok(LayoutIomode::Read),
        Layoutiomode4::Rw => Ok(LayoutIomode::ReadWrite),
        Layoutiomode4::Any => Err(Nfsstat4::BadIoMode.into()),
    }
}

/// Refuses a caller without a right to the file: other users of a client may not profit by an open.
fn may(view: &View<'_>, node: &Node, iomode: LayoutIomode) -> Result<(), Stop> {
    let right = match iomode {
        LayoutIomode::Read => Access::READ,
        LayoutIomode::ReadWrite => Access::MODIFY,
    };
    let (granted, _) = view.access(node, right)?;
    if granted.contains(right) || view.owns(node)? {
        return Ok(());
    }
    Err(Nfsstat4::Access.into())
}

fn body(distribution: &Distribution) -> Vec<u8> {
    match distribution {
        Distribution::Stripes(striping) => files_body(striping),
        Distribution::Mirrors(mirrors) => flexible_files::layout_body(mirrors),
    }
}

/// The body of a files layout with sparse packing (RFC 8881, 13.4.4). Clients send COMMIT to the
/// data servers.
fn files_body(striping: &Striping) -> Vec<u8> {
    let handles = striping.handles.iter().map(|handle| Opaque(handle)).collect();
    encoded(&FileLayout4 {
        deviceid: striping.device,
        util: striping.unit_bytes,
        first_stripe_index: 0,
        pattern_offset: 0,
        fh_list: Counted(handles),
    })
}
