//! MKNOD (RFC 1813, 3.3.11): makes a device, a named pipe or a socket; the types with a verb of
//! their own are refused with BADTYPE.

use comity_coherence::ChangesDirectories;
use comity_export::Door;
use comity_proto::nfs3::{Mknod3args, Mknoddata3, Sattr3, Specdata3};
use comity_vfs::{Device, Result, SetAttr, Special, Status, Wire};
use comity_xdr::Encoder;

use super::create_reply;
use crate::program::Nfs3;
use crate::reply::Answer;
use crate::request::{Request, Stop};
use crate::settings::set_attr;

pub(super) fn mknod(
    nfs: &Nfs3,
    request: &Request<'_>,
    reply: &mut Encoder,
) -> std::result::Result<Answer, Stop> {
    let Mknod3args { place, what } = request.arguments()?;
    let (view, dir) = request.enter(Door::Handle(place.dir.0))?;
    let made = wanted(&what).and_then(|(special, set)| {
        let cleared = nfs.host_call(request).clear_new_name((&view, &dir))?;
        view.mknod(cleared, &dir, place.name.0, special, &set)
    });
    Ok(create_reply::answer(reply, &view, &dir, made))
}

fn wanted(what: &Mknoddata3) -> Result<(Special, SetAttr<Wire>)> {
    let with = |special, wanted: &Sattr3| Ok((special, set_attr(wanted)?));
    match what {
        Mknoddata3::Blk(wanted, numbers) => with(Special::Block(device(numbers)), wanted),
        Mknoddata3::Chr(wanted, numbers) => with(Special::Character(device(numbers)), wanted),
        Mknoddata3::Sock(wanted) => with(Special::Socket, wanted),
        Mknoddata3::Fifo(wanted) => with(Special::Fifo, wanted),
        Mknoddata3::Reg | Mknoddata3::Dir | Mknoddata3::Lnk => Err(Status::BadType),
    }
}

const fn device(numbers: &Specdata3) -> Device {
    Device { major: numbers.major, minor: numbers.minor }
}
