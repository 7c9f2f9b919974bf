//! LAYOUTRETURN (RFC 8881, 18.44): a client gives layouts back, of one file, of a file system or of
//! the server.

use comity_proto::nfs4::{
    Layoutiomode4, Layoutreturn4, Layoutreturn4args, Layoutreturn4resok, LayoutreturnFile4,
    Nfsstat4, layout_type,
};
use comity_state::{ByteRange, LayoutIomode, LayoutScope};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::stop::{Stop, refused};

pub(super) fn layoutreturn(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Layoutreturn4args<'_> = args.value()?;
    if args.layout_type != layout_type::FILES {
        return Err(Nfsstat4::UnknownLayoutType.into());
    }
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
        Layoutreturn4::File(file) => of_file(compound, file, iomode)?,
        Layoutreturn4::Fsid => {
            let (view, node) = compound.real(Nfsstat4::Inval)?;
            let file = view.key(node);
            of_all(compound, LayoutScope::FileSystem(&file), iomode)?
        }
        Layoutreturn4::All => of_all(compound, LayoutScope::Server, iomode)?,
    };
    let stateid = stateid.map(|stateid| compound.leave(stateid));
    reply.value(&Layoutreturn4resok { stateid });
    Ok(())
}

/// The layout of a file that is left.
type Left = Option<comity_state::Stateid>;

fn of_file(
    compound: &Compound<'_>,
    returned: &LayoutreturnFile4<'_>,
    iomode: Option<LayoutIomode>,
) -> Result<Left, Stop> {
    let range = ByteRange::new(returned.offset, returned.length).ok_or(Nfsstat4::Inval)?;
    let (stateid, file) = (compound.stateid_of(&returned.stateid)?, compound.key()?);
    let engine = compound.engine();
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
