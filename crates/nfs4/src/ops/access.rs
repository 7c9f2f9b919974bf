//! ACCESS (RFC 8881, 18.1; RFC 8276, 8.5): returns the requested rights that the caller has, and
//! those that the server can judge (`supported`).

use comity_export::{Node, View};
use comity_proto::nfs4::{ACCESS4_XALIST, ACCESS4_XAREAD, ACCESS4_XAWRITE, Access4res, Nfsstat4};
use comity_vfs::{Access, FileType};
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::filehandle::Object;
use crate::stop::Stop;

const XATTR: u32 = ACCESS4_XAREAD | ACCESS4_XAWRITE | ACCESS4_XALIST;

pub(super) fn access(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let wanted: u32 = args.value()?;
    let known = Access::ALL.bits() | if compound.minor < 2 { 0 } else { XATTR };
    if wanted & !known != 0 {
        return Err(Nfsstat4::Inval.into());
    }
    let (granted, file_type) = match compound.object()? {
        Object::Pseudo(_) => ((Access::READ | Access::LOOKUP).bits(), FileType::Directory),
        Object::Absent(_) => return Err(Nfsstat4::Moved.into()),
        Object::In(view, node) => {
            let asked = Access::from_bits(wanted | by_xattr(wanted).bits());
            let (granted, attr) = view.access(node, asked)?;
            if attr.file_type == FileType::Directory {
                compound.note_look(view, node);
            }
            let tags = match view.may_tag(node)? {
                Some(may_tag) => xattr_rights(granted, may_tag),
                None => xattr_rights(granted, granted.contains(Access::MODIFY)),
            };
            (granted.bits() | tags | of_keys(view, node), attr.file_type)
        }
    };
    let supported = wanted & (meaningful(file_type).bits() | XATTR);
    let access = supported & granted;
    reply.value(&Access4res { supported, access });
    Ok(())
}

/// Returns the rights that are defined for an object of this type.
fn meaningful(file_type: FileType) -> Access {
    let always = Access::READ | Access::MODIFY | Access::EXTEND;
    match file_type {
        FileType::Directory => always | Access::LOOKUP | Access::DELETE,
        _ => always | Access::EXECUTE,
    }
}

/// Returns the rights to extended attributes by which a key submits credentials and asks about its
/// rights. A Linux client sends no SETXATTR or GETXATTR without them.
fn of_keys(view: &View<'_>, node: &Node) -> u32 {
    match (view.answers_keys(), view.takes_grants(node, b"comity.grant")) {
        (false, _) => 0,
        (true, false) => ACCESS4_XAREAD,
        (true, true) => ACCESS4_XAREAD | ACCESS4_XAWRITE,
    }
}

/// Returns the rights that decide about the requested rights to extended attributes.
fn by_xattr(wanted: u32) -> Access {
    let read =
        if wanted & (ACCESS4_XAREAD | ACCESS4_XALIST) != 0 { Access::READ } else { Access::NONE };
    read | if wanted & ACCESS4_XAWRITE != 0 { Access::MODIFY } else { Access::NONE }
}

fn xattr_rights(granted: Access, may_tag: bool) -> u32 {
    let right = |has, bits| if has { bits } else { 0 };
    let reads = right(granted.contains(Access::READ), ACCESS4_XAREAD | ACCESS4_XALIST);
    reads | right(may_tag, ACCESS4_XAWRITE)
}
