//! RENAME (RFC 1813, 3.3.14): gives an object another name, in the same directory or another
//! one of the same export. Both directories are stable before the reply is sent.

use comity_coherence::ChangesDirectories;
use comity_export::Door;
use comity_proto::nfs3::{Rename3args, Rename3wcc};
use comity_xdr::Encoder;

use crate::attributes::{wcc_data, wcc_now};
use crate::program::Nfs3;
use crate::reply::{Answer, fail, ok};
use crate::request::{Request, Stop};

pub(super) fn rename(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> Result<Answer, Stop> {
    let Rename3args { from, to } = request.arguments()?;
    let (view, source) = request.enter(Door::Handle(from.dir.0))?;
    let target = view.admit(to.dir.0)?;
    let (old, new) = ((&source, from.name.0), (&target, to.name.0));
    let renamed = nfs
        .host_call(request)
        .clear_rename(&view, old, new)
        .and_then(|cleared| view.rename(cleared, old, new));
    Ok(match renamed {
        Ok((from, to)) => {
            let body = Rename3wcc { fromdir_wcc: wcc_data(&from), todir_wcc: wcc_data(&to) };
            ok(reply, &view, &body).behind(view.change_barrier(&source, Some(&target)))
        }
        Err(status) => {
            let fromdir_wcc = wcc_now(&view, &source);
            let todir_wcc = wcc_now(&view, &target);
            fail(reply, &view, status, &Rename3wcc { fromdir_wcc, todir_wcc })
        }
    })
}
