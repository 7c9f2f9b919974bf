//! LINK (RFC 8881, 18.9): gives the saved object a name in the current directory.

use comity_coherence::ChangesDirectories;
use comity_proto::nfs4::{Component4, Nfsstat4};
use comity_vfs::{FileType, Status};
use comity_xdr::{Decoder, Encoder};

use crate::attributes::change_info;
use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn link(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let newname: Component4<'_> = args.value()?;
    let (view, dir) = compound.real(Nfsstat4::RoFs)?;
    let (from, node) = compound.real_saved(Nfsstat4::IsDir)?;
    let name = compound.component(newname.0)?;
    if from.export_id() != view.export_id() {
        return Err(Nfsstat4::XDev.into());
    }
    let cleared = compound.asker(None).clear_link((view, node), dir)?;
    let linked =
        view.link(cleared, node, dir, name).map_err(|status| match view.getattr(node) {
            // The RFC demands ISDIR where Linux returns EPERM.
            Ok(attr) if attr.file_type == FileType::Directory => Status::IsDir,
            _ => status,
        })?;
    reply.value(&change_info(&linked.change));
    let barrier = view.change_barrier(dir, Some(node));
    compound.behind(barrier);
    Ok(())
}
