//! RENAME (RFC 8881, 18.26): gives an object of the saved directory a name in the current one.

use comity_coherence::ChangesDirectories;
use comity_export::{Node, View};
use comity_proto::nfs4::{Nfsstat4, Rename4args, Rename4resok};
use comity_vfs::{FileType, Status};
use comity_xdr::{Decoder, Encoder};

use crate::attributes::change_info;
use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn rename(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Rename4args<'_> = args.value()?;
    let (view, target) = compound.real(Nfsstat4::RoFs)?;
    let (from, source) = compound.real_saved(Nfsstat4::RoFs)?;
    let (oldname, newname) =
        (compound.component(args.oldname.0)?, compound.component(args.newname.0)?);
    if from.export_id() != view.export_id() {
        return Err(Nfsstat4::XDev.into());
    }
    compound.outside_grace(view)?;
    let (old, new) = ((source, oldname), (target, newname));
    let cleared = compound.asker(None).clear_rename(view, old, new)?;
    let renamed = view.rename(cleared, old, new);
    let (from, to) = renamed.map_err(|status| match status {
        // The object at the new name has another type.
        Status::IsDir | Status::NotDir if is_dir(from, source) && is_dir(view, target) => {
            Status::Exist
        }
        status => status,
    })?;
    let (source_cinfo, target_cinfo) = (change_info(&from), change_info(&to));
    reply.value(&Rename4resok { source_cinfo, target_cinfo });
    let barrier = view.change_barrier(source, Some(target));
    compound.behind(barrier);
    Ok(())
}

fn is_dir(view: &View<'_>, node: &Node) -> bool {
    view.getattr(node).is_ok_and(|attr| attr.file_type == FileType::Directory)
}
