//! MNT (RFC 1813, 5.2.1): returns the handle of an export's root or of a directory below it,
//! and the flavors that the export takes. Symbolic links in the path are not followed. An export
//! whose files other servers have is refused: NFSv3 cannot say where they are.

use comity_export::{Door, View};
use comity_proto::mount::{Dirpath, MountOk, Mountstat3};
use comity_rpc::Done;
use comity_vfs::{FileType, Status};
use comity_xdr::{Counted, Encoder, Opaque};

use super::Mount;
use super::path::plain;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn mnt(
    mount: &Mount,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let path = plain(request.arguments::<Dirpath<'_>>()?.0);
    let entered = request.enter_to_mount(Door::Mount(&path));
    let (view, node) = entered.map_err(|stop| match stop {
        Stop::Referred => mount.refuse_referral(request, &path).into(),
        stop => stop,
    })?;
    if view.getattr(&node)?.file_type != FileType::Directory {
        return Err(Status::NotDir.into());
    }
    let sealed = view.seal(&node);
    reply.value(&Mountstat3::Ok);
    reply.value(&MountOk { handle: Opaque(sealed.bytes()), flavors: flavors(&view) });
    mount.mounts.add(request.visitor.peer().ip(), path);
    Ok(Answer::new(Done { status: 0, export: Some(view.export_id().0) }))
}

fn flavors<const LIMIT: u32>(view: &View<'_>) -> Counted<u32, LIMIT> {
    let flavors = view.rules().flavors.iter().map(|flavor| flavor.0);
    Counted(flavors.take(LIMIT as usize).collect())
}
