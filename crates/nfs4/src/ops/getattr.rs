//! GETATTR (RFC 8881, 18.7): attributes of an object. Nearly every COMPOUND contains one.

use comity_proto::nfs4::{Bitmap4, Nfsstat4};
use comity_xdr::{Decoder, Encoder};

use crate::attributes::{READABLE_NOT, Subject, absent_fattr4, fattr4};
use crate::compound::Compound;
use crate::filehandle::Object;
use crate::stop::Stop;

pub(super) fn getattr(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let wanted: Bitmap4 = args.value()?;
    if !wanted.and(&READABLE_NOT).is_empty() {
        return Err(Nfsstat4::Inval.into());
    }
    let absent = match compound.object()? {
        Object::Absent(absent) => *absent,
        object => return fattr4(reply, &Subject::of(compound, object)?, &wanted),
    };
    absent_fattr4(reply, (compound, &absent), &wanted)?;
    let export = absent.export().id().0;
    compound.tell_place(export, reply);
    Ok(())
}
