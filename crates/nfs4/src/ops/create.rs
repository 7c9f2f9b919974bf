//! CREATE (RFC 8881, 18.4): creates an object other than a regular file, and makes it the current
//! one.

use comity_coherence::DirectoryClearance;
use comity_export::{Node, SeenMade, View};
use comity_proto::nfs4::{Create4args, Create4resok, Createtype4, Nfsstat4, Specdata4};
use comity_vfs::{Device, Special};
use comity_xdr::{Decoder, Encoder};

use crate::attributes::{Settings, change_info};
use crate::compound::Compound;
use crate::filehandle::Object;
use crate::stop::Stop;
use crate::undo::New;

pub(super) fn create(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args: Create4args<'_> = args.value()?;
    let (view, dir) = compound.real(Nfsstat4::RoFs)?;
    let is_dir = matches!(args.objtype, Createtype4::Dir);
    let settings = Settings::read(view, &args.createattrs, is_dir, compound.minor)?;
    if settings.acls.is_some() && !is_dir {
        // Check this before the object is created, so that none is left behind after the failure.
        return Err(Nfsstat4::AttrNotSupp.into());
    }
    let name = compound.component(args.objname.0)?;
    let settings = settings.for_new(view, dir)?;
    let cleared = compound.clear_new_name(view, dir)?;
    let made = make((view, cleared.clone()), (dir, name), &args.objtype, &settings)?;
    let object = Object::In(view.clone(), made.value.node);
    let done =
        settings.set_acls(compound.asker(None).clear_new(), (view, &made.value.node), is_dir);
    done.inspect_err(|_| New::made(dir, name, &made).take_back(compound, view))?;
    drop(cleared);
    reply.value(&Create4resok { cinfo: change_info(&made.change), attrset: settings.mask });
    let barrier = view.change_barrier(dir, Some(&made.value.node));
    compound.behind(barrier);
    compound.go_to(object);
    Ok(())
}

fn make(
    (view, cleared): (&View<'_>, DirectoryClearance<'_>),
    (dir, name): (&Node, &[u8]),
    what: &Createtype4<'_>,
    Settings { set, .. }: &Settings,
) -> Result<SeenMade, Stop> {
    let device = |Specdata4 { major, minor }| Device { major, minor };
    let special = |cleared, special| view.mknod(cleared, dir, name, special, set);
    let made = match *what {
        Createtype4::Dir => view.mkdir(cleared, dir, name, set),
        Createtype4::Lnk(target) if target.0.is_empty() => return Err(Nfsstat4::Inval.into()),
        Createtype4::Lnk(target) => view.symlink(cleared, dir, name, target.0, set),
        Createtype4::Blk(numbers) => special(cleared, Special::Block(device(numbers))),
        Createtype4::Chr(numbers) => special(cleared, Special::Character(device(numbers))),
        Createtype4::Sock => special(cleared, Special::Socket),
        Createtype4::Fifo => special(cleared, Special::Fifo),
        Createtype4::Reg | Createtype4::Attrdir | Createtype4::Namedattr => {
            return Err(Nfsstat4::BadType.into());
        }
    };
    Ok(made?)
}
