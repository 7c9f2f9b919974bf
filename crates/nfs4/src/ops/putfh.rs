//! PUTFH (RFC 8881, 18.19): goes to the object of a handle.

use comity_export::Door;
use comity_proto::nfs4::NfsFh4;
use comity_xdr::{Decoder, Encoder};

use crate::compound::Compound;
use crate::object::Object;
use crate::table::Stop;

pub(super) fn putfh<'a>(
    compound: &mut Compound<'a>,
    args: &mut Decoder<'a>,
    _: &mut Encoder,
) -> Result<(), Stop> {
    let handle = args.value::<NfsFh4<'_>>()?.0;
    let object = match compound.pseudo().open(handle)? {
        Some(node) => Object::Pseudo(node),
        None => compound.enter(Door::Handle(handle))?,
    };
    compound.go_to(object);
    Ok(())
}
