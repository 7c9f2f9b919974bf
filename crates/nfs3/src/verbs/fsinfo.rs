//! FSINFO (RFC 1813, 3.3.19): returns the limits of the file system and the server; clients ask
//! once a mount.

use comity_export::Door;
use comity_proto::nfs3::{Fsinfo3resok, NfsFh3, PostOpAttr, fsf3};
use comity_vfs::Properties;
use comity_xdr::Encoder;

use crate::limits::{LISTING_BYTES_PREFERRED, TRANSFER_BYTES_MAX, TRANSFER_MULTIPLE_BYTES};
use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};
use crate::time::nfstime3;

pub(super) fn fsinfo(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let root = request.arguments::<NfsFh3<'_>>()?;
    let (view, node) = request.enter_to_mount(Door::Handle(root.0))?;
    let obj_attributes = nfs.beside_failure(&view, &node);
    Ok(match view.properties(&node) {
        Ok(properties) => ok(reply, &view, &told(obj_attributes, &properties)),
        Err(status) => fail(reply, &view, status, &obj_attributes),
    })
}

fn told(obj_attributes: PostOpAttr, properties: &Properties) -> Fsinfo3resok {
    Fsinfo3resok {
        obj_attributes,
        rtmax: TRANSFER_BYTES_MAX,
        rtpref: TRANSFER_BYTES_MAX,
        rtmult: TRANSFER_MULTIPLE_BYTES,
        wtmax: TRANSFER_BYTES_MAX,
        wtpref: TRANSFER_BYTES_MAX,
        wtmult: TRANSFER_MULTIPLE_BYTES,
        dtpref: LISTING_BYTES_PREFERRED,
        maxfilesize: properties.file_size_max,
        time_delta: nfstime3(properties.time_delta),
        properties: bits(properties),
    }
}

fn bits(properties: &Properties) -> u32 {
    let link = if properties.hard_links { fsf3::LINK } else { 0 };
    let symlink = if properties.symbolic_links { fsf3::SYMLINK } else { 0 };
    link | symlink | fsf3::HOMOGENEOUS | fsf3::CANSETTIME
}
