//! EXPORT (RFC 1813, 5.2.5): returns the exports that are offered to the caller. Exports for
//! others only are left out, and so are the names of those others, and exports whose files other
//! servers have, because MNT refuses them.

use std::os::unix::ffi::OsStrExt;

use comity_export::{Client, VisibleExport};
use comity_proto::mount::{ExportLine, NAME_BYTES_MAX};
use comity_rpc::Done;
use comity_xdr::Encoder;

use super::Mount;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn export(
    _: &Mount,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    request.arguments::<()>()?;
    let offered = request.plan.offered(request.visitor);
    let present = offered.iter().filter(|offered| !offered.is_absent());
    present.for_each(|offered| line(offered, reply));
    reply.value(&false);
    Ok(Answer::new(Done::default()))
}

/// An entry without groups means that the export is offered to everybody.
fn line(offered: &VisibleExport<'_>, reply: &mut Encoder) {
    let client = offered.client();
    let name = client.to_string();
    let name = name.as_bytes().get(..NAME_BYTES_MAX as usize).unwrap_or(name.as_bytes());
    let groups = if *client == Client::Everybody { Vec::new() } else { vec![name] };
    let path = offered.path().as_os_str().as_bytes();
    reply.value(&true);
    reply.value(&ExportLine { path, groups });
}
