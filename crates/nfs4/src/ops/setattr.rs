//! SETATTR (RFC 8881, 18.30): changes attributes. A change of the size needs the right to write.

use comity_coherence::{Act, ChangesDirectories};
use comity_proto::nfs4::{Nfsstat4, Setattr4args};
use comity_state::Share;
use comity_vfs::FileType;
use comity_xdr::{Decoder, Encoder};

use crate::attributes::Settings;
use crate::compound::Compound;
use crate::stateid::shows;
use crate::stop::Stop;

pub(super) fn setattr(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Setattr4args<'_> = args.value()?;
    let (view, node) = compound.real(Nfsstat4::RoFs)?;
    let file_type = view.getattr(node)?.file_type;
    let is_dir = file_type == FileType::Directory;
    let mut settings = Settings::read(view, &args.obj_attributes, is_dir, compound.minor)?;
    if settings.is_for_new() {
        return Err(Nfsstat4::Inval.into());
    }
    if file_type == FileType::Symlink {
        // A symbolic link has no mode of its own. The attribute is accepted and ignored, as on
        // Linux servers.
        settings.set.mode = None;
    }
    if settings.has_acls() {
        // The ACL comes last: nothing may be changed before it is known that it can be set.
        view.may_set_attributes(node)?;
    }
    let act = Act::of_setting(&settings.set, settings.has_acls());
    let shown = if settings.set.size.is_some() {
        compound.must_be_file(file_type)?;
        shows(compound, &args.stateid, Share::WRITE)?.0
    } else {
        // The stateid does not matter here, but a valid one identifies the client.
        shows(compound, &args.stateid, 0).ok().and_then(|(shown, _)| shown)
    };
    let bearer = shown.as_ref().map(|shown| &**shown.bearer);
    let cleared = compound.asker(bearer).clear_attributes((view, node), act)?;
    if !settings.set.is_empty() {
        view.setattr(cleared.of_object(), node, &settings.set, None)?;
    }
    // The ACL is set after the mode in the same request, so that the ACL decides (RFC 8881,
    // 6.4.1.3).
    settings.set_acls(cleared.of_object(), (view, node), is_dir)?;
    drop(cleared);
    reply.value(&settings.mask);
    let barrier = view.change_barrier(node, None);
    compound.behind(barrier);
    Ok(())
}
