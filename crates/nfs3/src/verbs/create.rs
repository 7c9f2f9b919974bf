//! CREATE (RFC 1813, 3.3.8): makes a regular file. The backend keeps the client's verifier with
//! an exclusive file, so that a retry after a restart finds the file of the first try.

use comity_coherence::{Act, ChangesDirectories};
use comity_export::{Door, Node, View};
use comity_proto::nfs3::{Create3args, Createhow3};
use comity_vfs::{Create, Result, Status, Wire};
use comity_xdr::Encoder;

use super::create_reply;
use crate::program::Nfs3;
use crate::reply::Answer;
use crate::request::{Request, Stop};
use crate::settings::set_attr;

pub(super) fn create(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> std::result::Result<Answer, Stop> {
    let Create3args { place, how } = request.arguments()?;
    let (view, dir) = request.enter(Door::Handle(place.dir.0))?;
    let made = wanted(&how).and_then(|how| {
        let call = nfs.host_call(request);
        let cleared = call.clear_new_name((&view, &dir))?;
        clear_existing(&call, &view, (&dir, place.name.0), &how)?;
        view.create(cleared, &dir, place.name.0, &how)
    });
    Ok(create_reply::answer(reply, &view, &dir, made))
}

/// Clears the act on a file that exists already.
fn clear_existing<'a>(
    call: &impl ChangesDirectories<'a>,
    view: &View<'_>,
    name: (&Node, &[u8]),
    how: &Create<Wire>,
) -> Result<()> {
    match how {
        Create::Unchecked(set) if set.size.is_some() => {
            call.clear_object_named(view, name, Act::Resize)
        }
        // An existing file is not changed: the reply only has its attributes.
        Create::Unchecked(_) => match call.clear_object_named(view, name, Act::Read) {
            Err(Status::Acces) => Ok(()),
            cleared => cleared,
        },
        Create::Guarded(_) | Create::Exclusive(_) => Ok(()),
    }
}

fn wanted(how: &Createhow3) -> Result<Create<Wire>> {
    Ok(match how {
        Createhow3::Unchecked(wanted) => Create::Unchecked(set_attr(wanted)?),
        Createhow3::Guarded(wanted) => Create::Guarded(set_attr(wanted)?),
        Createhow3::Exclusive(verifier) => Create::Exclusive(*verifier),
    })
}
