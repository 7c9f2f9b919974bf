//! WRITE (RFC 1813, 3.3.7): writes bytes into a file, straight from the received record. A
//! stable WRITE is answered after a barrier.

use comity_coherence::Act;
use comity_export::Door;
use comity_proto::nfs3::{StableHow, Write3args, Write3resok};
use comity_vfs::{Status, Wire, Written};
use comity_xdr::Encoder;

use crate::attributes::wcc_data;
use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};

pub(super) fn write(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let args = request.arguments::<Write3args<'_>>()?;
    let (view, node) = request.enter(Door::Handle(args.file.0))?;
    let written = match args.data.0.get(..args.count as usize) {
        Some(data) => {
            let cleared = nfs.clear(request, (&view, &node), Act::Write);
            cleared.and_then(|clearance| view.write(clearance, &node, args.offset, data))
        }
        None => Err(Status::Inval),
    };
    Ok(match written {
        Ok(written) => {
            let stable = args.stable != StableHow::Unstable;
            let barrier = stable.then(|| view.barrier(&node));
            ok(reply, &view, &told(nfs, &written, args.stable)).behind(barrier)
        }
        Err(status) => fail(reply, &view, status, &nfs.wcc_beside_failure(&view, &node)),
    })
}

fn told(nfs: &Nfs3, written: &Written<Wire>, committed: StableHow) -> Write3resok {
    let file_wcc = wcc_data(&written.change);
    Write3resok { file_wcc, count: written.value, committed, verf: nfs.verifier() }
}
