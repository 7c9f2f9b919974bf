//! LISTXATTRS (RFC 8276, 8.4.3): the names of extended attributes of the namespace `user`, page by
//! page. A cookie is the number of names before it in sorted order.

use comity_proto::nfs4::{Listxattrs4args, Nfsstat4};
use comity_xdr::{Decoder, Encoder, padding};

use crate::compound::Compound;
use crate::stop::Stop;

/// Bytes around the names: cookie, count, eof.
const FRAME_BYTES: usize = 8 + 4 + 4;

pub(super) fn listxattrs(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let Listxattrs4args { cookie, maxcount } = args.value()?;
    let (view, node) = compound.real(Nfsstat4::NotSupp)?;
    let mut names = view.listxattr(node)?;
    names.sort_unstable();
    let start = usize::try_from(cookie).unwrap_or(usize::MAX);
    let rest = names.get(start..).ok_or(Nfsstat4::BadCookie)?;
    let most = compound.room(reply).min(maxcount as usize);
    let mut left = most.checked_sub(FRAME_BYTES).ok_or(Nfsstat4::TooSmall)?;
    let fits = |name: &&[u8]| match left.checked_sub(4 + name.len() + padding(name.len())) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    };
    let shown = rest.iter().map(|name| &**name).take_while(fits).count();
    if shown == 0 && !rest.is_empty() {
        return Err(Nfsstat4::TooSmall.into());
    }
    reply.value(&((start + shown) as u64));
    reply.value(&(shown as u32));
    rest.iter().take(shown).for_each(|name| reply.opaque(name));
    reply.value(&(shown == rest.len()));
    Ok(())
}
