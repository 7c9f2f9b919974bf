//! READDIR (RFC 1813, 3.3.16): names in a directory, page by page.

use comity_export::Door;
use comity_proto::nfs3::Readdir3args;
use comity_vfs::Listed;
use comity_xdr::Encoder;

use crate::listing::{self, Wanted};
use crate::program::Nfs3;
use crate::reply::Answer;
use crate::request::{Request, Stop};

pub(super) fn readdir(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let Readdir3args { dir, cookie, cookieverf, count } = request.arguments()?;
    let (view, dir) = request.enter(Door::Handle(dir.0))?;
    let wanted =
        Wanted { cookie, cookieverf, bytes_max: count, names_max: count, listed: Listed::Names };
    Ok(listing::answer(nfs, reply, (&view, &dir), &wanted))
}
