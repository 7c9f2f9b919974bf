//! SETXATTR and REMOVEXATTR (RFC 8276, 8.4.2, 8.4.4): change an extended attribute of the namespace
//! `user`.

use comity_coherence::{Act, ChangesDirectories};
use comity_proto::nfs4::{Nfsstat4, Setxattr4args, SetxattrOption4, Xattrkey4};
use comity_vfs::XattrMode;
use comity_xdr::{Decoder, Encoder};

use crate::attributes::change_info;
use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn setxattr(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let Setxattr4args { option, key, value } = args.value()?;
    let mode = match option {
        SetxattrOption4::Either => XattrMode::Either,
        SetxattrOption4::Create => XattrMode::Create,
        SetxattrOption4::Replace => XattrMode::Replace,
    };
    change(compound, key.0, Some(value.0), mode, reply)
}

pub(super) fn removexattr(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let name: Xattrkey4<'_> = args.value()?;
    change(compound, name.0, None, XattrMode::Replace, reply)
}

fn change(
    compound: &mut Compound<'_>,
    name: &[u8],
    value: Option<&[u8]>,
    mode: XattrMode,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let (view, node) = compound.real(Nfsstat4::RoFs)?;
    if view.takes_grants(node, name) {
        let change = view.submit_grants(node, value.unwrap_or_default())?;
        reply.value(&change_info(&change));
        return Ok(());
    }
    // As for SETATTR (RFC 8881, 18.30.4), delegations are recalled first: their holders may cache
    // extended attributes.
    let cleared = compound.asker(None).clear_attributes((view, node), Act::Tag)?;
    let change = view.setxattr(cleared.of_object(), node, name, value, mode)?;
    drop(cleared);
    reply.value(&change_info(&change));
    let barrier = view.change_barrier(node, None);
    compound.behind(barrier);
    Ok(())
}
