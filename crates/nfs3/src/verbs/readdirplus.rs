//! READDIRPLUS (RFC 1813, 3.3.17): returns names in a directory with handles and attributes,
//! page by page. If an export's rules forbid it, the status is NOTSUPP, and clients use
//! READDIR.

use comity_export::Door;
use comity_proto::nfs3::Readdirplus3args;
use comity_vfs::{Listed, Status};
use comity_xdr::Encoder;

use crate::listing::{self, Wanted};
use crate::program::Nfs3;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn readdirplus(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Readdirplus3args<'_>>()?;
    let (view, dir) = request.enter(Door::Handle(args.dir.0))?;
    if !view.rules().readdirplus {
        return Err(Status::NotSupp.into());
    }
    let wanted = Wanted {
        cookie: args.cookie,
        cookieverf: args.cookieverf,
        bytes_max: args.maxcount,
        names_max: args.dircount,
        listed: Listed::Nodes,
    };
    Ok(listing::answer(nfs, reply, (&view, &dir), &wanted))
}
