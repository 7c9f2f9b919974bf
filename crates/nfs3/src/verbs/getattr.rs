//! GETATTR (RFC 1813, 3.3.1): returns the attributes of an object. It is half of all calls.

use comity_coherence::Hosts;
use comity_export::{Outside, View};
use comity_proto::nfs3::NfsFh3;
use comity_vfs::{Attr, Status, Wire};
use comity_xdr::Encoder;

use crate::attributes::fattr3;
use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};

pub(super) fn getattr(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let object = request.arguments::<NfsFh3<'_>>()?;
    let (view, object) = request.approach(object.0)?;
    Ok(match nfs.anything_delegated() {
        None => told(reply, &view, view.look(&object)),
        Some(hosts) => told_newest(reply, &view, hosts, &object),
    })
}

/// This is a function of its own so that the common path does not copy for the sake of a rare
/// one.
#[inline(never)]
fn told_newest(reply: &mut Encoder, view: &View<'_>, hosts: &Hosts, object: &Outside) -> Answer {
    told(reply, view, hosts.newest(view, object))
}

#[inline(always)]
fn told(reply: &mut Encoder, view: &View<'_>, found: Result<Attr<Wire>, Status>) -> Answer {
    match found {
        Ok(attr) => ok(reply, view, &fattr3(&attr)),
        Err(status) => fail(reply, view, status, &()),
    }
}
