//! COMMIT (RFC 1813, 3.3.21): the reply is sent when all data written to a file are on stable
//! storage. Offset and count are ignored: the whole file is committed, which is allowed and
//! costs the same.

use comity_export::Door;
use comity_proto::nfs3::{Commit3args, Commit3resok, WccData};
use comity_xdr::Encoder;

use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};

pub(super) fn commit(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Commit3args<'_>>()?;
    let (view, node) = request.enter(Door::Handle(args.file.0))?;
    Ok(match view.getattr(&node) {
        Ok(attr) => {
            let file_wcc = WccData { before: None, after: nfs.beside(&view, &node, &attr) };
            let body = Commit3resok { file_wcc, verf: nfs.verifier() };
            ok(reply, &view, &body).behind(Some(view.barrier(&node)))
        }
        Err(status) => fail(reply, &view, status, &WccData::default()),
    })
}
