//! VERIFY and NVERIFY (RFC 8881, 18.30, 18.15): continue only if attributes are equal, or not
//! equal.

use comity_proto::nfs4::{Bitmap4, Fattr4, Nfsstat4, attribute};
use comity_xdr::{Decoder, Encoder};

use crate::attributes::{READABLE_NOT, Subject, fattr4, supported};
use crate::compound::Compound;
use crate::stop::Stop;

const COMPARABLE_NOT: Bitmap4 = READABLE_NOT.or(&Bitmap4::of(&[attribute::RDATTR_ERROR]));

pub(super) fn verify(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    if is_same(compound, args, reply)? { Ok(()) } else { Err(Nfsstat4::NotSame.into()) }
}

pub(super) fn nverify(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    if is_same(compound, args, reply)? { Err(Nfsstat4::Same.into()) } else { Ok(()) }
}

/// Encodes the object's attributes into the reply, compares them, and removes them again.
fn is_same(
    compound: &Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<bool, Stop> {
    let said: Fattr4<'_> = args.value()?;
    if !said.attrmask.is_within(&supported(compound.minor)) {
        return Err(Nfsstat4::AttrNotSupp.into());
    }
    if !said.attrmask.and(&COMPARABLE_NOT).is_empty() {
        return Err(Nfsstat4::Inval.into());
    }
    let start = reply.checkpoint();
    fattr4(reply, &Subject::of(compound, compound.object()?)?, &said.attrmask)?;
    let own = reply.contiguous_since(start).map(Decoder::whole::<Fattr4<'_>>);
    let same = own.is_some_and(|own| own == Ok(said));
    reply.rollback(start);
    Ok(same)
}
