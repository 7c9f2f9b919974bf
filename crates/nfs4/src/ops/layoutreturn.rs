//! LAYOUTRETURN (RFC 8881, 18.44): a client gives layouts back, of one file, of a file system or of
//! the server.

use comity_proto::nfs4::flexible_files::FfLayoutreturn4;
use comity_proto::nfs4::{
    Layoutiomode4, Layoutreturn4, Layoutreturn4args, Layoutreturn4resok, LayoutreturnFile4,
    Nfsstat4,
};
use comity_state::{ByteRange, LayoutIomode, LayoutScope};
use comity_vfs::LayoutKind;
use comity_xdr::{Decoder, Encoder};

use super::flexible_files::note_errors;
use crate::compound::Compound;
use crate::layout_kind::{check_type, kind_of};
use crate::stop::{Stop, refused};

pub(super) fn layoutreturn(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Layoutreturn4args<'_> = args.value()?;
    let kind = kind_of(args.layout_type)?;
    if args.reclaim {
        // Layouts do not survive a restart of the server, so there is none to give back.
        return Err(Nfsstat4::NoGrace.into());
    }
    let iomode = match args.iomode {
        Layoutiomode4::Read => Some(LayoutIomode::Read),
        Layoutiomode4::Rw => Some(LayoutIomode::ReadWrite),
        Layoutiomode4::Any => None,
    };
    let stateid = match &args.layoutreturn {
        Layoutreturn4::File(file) => of_file(compound, (file, kind), iomode)?,
        Layoutreturn4::Fsid => {
            let (view, node) = compound.real(Nfsstat4::Inval)?;
            check_type(args.layout_type, view.layout_kind())?;
            let file = view.key(node);
            of_all(compound, LayoutScope::FileSystem(&file), iomode)?
        }
        Layoutreturn4::All => {
            let others = compound.plan.exports_of_other_layouts(kind);
            of_all(compound, LayoutScope::ServerBut(&others), iomode)?
        }
    };
    let stateid = stateid.map(|stateid| compound.leave(stateid));
    reply.value(&Layoutreturn4resok { stateid });
    Ok(())
}

/// The layout of a file that is left.
type Left = Option<comity_state::Stateid>;

fn of_file(
    compound: &Compound<'_>,
    (returned, kind): (&LayoutreturnFile4<'_>, LayoutKind),
    iomode: Option<LayoutIomode>,
) -> Result<Left, Stop> {
    let range = ByteRange::new(returned.offset, returned.length).ok_or(Nfsstat4::Inval)?;
    let (stateid, file) = (compound.stateid_of(&returned.stateid)?, compound.key()?);
    let engine = compound.engine();
    // Linux sends an empty body if it has no memory for a report.
    if kind == LayoutKind::FlexibleFiles && !returned.body.0.is_empty() {
        let report: FfLayoutreturn4<'_> = Decoder::whole(returned.body.0)?;
        let writes = engine.check_layout(compound.at(&file), &stateid).map_err(refused)?;
        note_errors(compound, &report.ioerr_report.0, writes)?;
    }
    engine.layoutreturn(compound.at(&file), &stateid, (iomode, range)).map_err(refused)
}

fn of_all(
    compound: &Compound<'_>,
    scope: LayoutScope<'_>,
    iomode: Option<LayoutIomode>,
) -> Result<Left, Stop> {
    let client = compound.client().ok_or(Nfsstat4::OpNotInSession)?;
    let by = (compound.now(), compound.caller);
    let returned = compound.engine().layoutreturn_all(by, client, (scope, iomode));
    returned.map(|()| None).map_err(refused)
}
