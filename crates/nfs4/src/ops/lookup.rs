//! LOOKUP (RFC 8881, 18.13): makes the object of a name the current one. If an export is mounted
//! there, that is its root.

use comity_proto::nfs4::Component4;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::filehandle::Object;
use crate::stop::Stop;

pub(super) fn lookup<'a>(
    compound: &mut Compound<'a>,
    args: &mut Decoder<'a>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    if let Ok(Object::In(view, dir)) = compound.object() {
        compound.note_look(view, dir);
    }
    let name = compound.component(args.value::<Component4<'_>>()?.0)?;
    let object = compound.find(name)?.entered(compound)?;
    compound.go_to(object);
    Ok(())
}
