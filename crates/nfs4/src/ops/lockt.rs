//! LOCKT (RFC 8881, 18.11): tests whether a lock would be granted.

use comity_proto::nfs4::{Lockt4args, Nfsstat4};
use comity_xdr::{Decoder, Encoder};

use super::lock::{denied, kind, program, range};
use crate::compound::Compound;
use crate::stop::Stop;

pub(super) fn lockt(
    compound: &mut Compound<'_>,
    args: &mut Decoder<'_>,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let args = args.value::<Lockt4args<'_>>()?;
    let (view, node) = compound.real(Nfsstat4::IsDir)?;
    compound.must_be_file(view.getattr(node)?.file_type)?;
    let client = compound.client_of(args.owner.clientid)?;
    let (file, bytes) = (compound.key()?, range(args.offset, args.length)?);
    let wanted = (&file, bytes, kind(args.locktype));
    let owner = args.owner.owner.0;
    let by = (compound.now(), compound.caller);
    let tested = compound.engine().test_lock(by, &client, owner, wanted);
    let free = tested.is_err() || compound.is_free(&file, (bytes, kind(args.locktype)));
    let tested = if free { tested } else { Err(program(bytes)) };
    tested.map_err(|refusal| denied(compound, refusal, reply))
}
