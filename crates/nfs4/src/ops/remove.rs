//! REMOVE (RFC 8881, 18.25): removes a name, whatever the type of its object.

use comity_proto::nfs4::{Component4, Nfsstat4};
use comity_vfs::Status;
use comity_xdr::{Decoder, Encoder};

use crate::attributes::change_info;
use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn remove(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let target: Component4<'_> = args.value()?;
    let (view, dir) = compound.real(Nfsstat4::RoFs)?;
    let name = compound.component(target.0)?;
    let cleared = compound.clear_removal(view, (dir, name))?;
    let change = match view.remove(cleared.clone(), dir, name) {
        Err(Status::IsDir) => view.rmdir(cleared, dir, name),
        removed => {
            drop(cleared);
            removed
        }
    };
    reply.value(&change_info(&change?));
    let barrier = view.change_barrier(dir, None);
    compound.behind(barrier);
    Ok(())
}
