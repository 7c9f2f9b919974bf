//! LIST and DROP: the credentials that the caller holds or has signed.

use comity_keynote::AssertionDigest;
use comity_programs::{CallFailure, answer, text};
use comity_proto::grants::{DropArgs, LISTED_MAX, ListArgs, ListOk, Listed, Status};
use comity_rpc::Call;
use comity_xdr::{Counted, Encoder, Malformed};

use crate::request::Request;

/// Most bytes of texts in one reply, so that it fits into a record.
const PAGE_BYTES_MAX: usize = 512 << 10;

pub(crate) fn list(
    request: &Request<'_>,
    call: &Call<'_>,
    reply: &mut Encoder,
) -> Result<u32, Malformed> {
    let ListArgs { given, after } = call.arguments()?;
    let all = if given {
        request.grants.signed_by(&request.key)
    } else {
        request.grants.held_by(&request.key)
    };
    let behind = all.into_iter().filter(|one| *one.digest.as_bytes() > after || after == [0; 32]);
    let mut behind: Vec<_> = behind.collect();
    behind.sort_by_key(|one| (*one.digest.as_bytes(), one.holder));
    let mut bytes = 0;
    let fits = behind.iter().take(LISTED_MAX as usize).take_while(|one| {
        bytes += one.text.len();
        bytes <= PAGE_BYTES_MAX
    });
    let holders: Vec<_> = fits.map(|one| one.holder.to_string()).collect();
    let listed = behind.iter().zip(&holders).map(|(one, holder)| Listed {
        digest: *one.digest.as_bytes(),
        holder: text(holder),
        text: text(&one.text),
        revoked: one.revoked,
    });
    let listed = ListOk { listed: Counted(listed.collect()), end: holders.len() == behind.len() };
    Ok(answer(reply, Ok(listed)))
}

pub(crate) fn drop_held(
    request: &Request<'_>,
    call: &Call<'_>,
    reply: &mut Encoder,
) -> Result<u32, Malformed> {
    let Counted(digests) = call.arguments::<DropArgs>()?;
    let digests: Vec<_> = digests.into_iter().map(AssertionDigest::from_bytes).collect();
    let dropped = request.grants.drop_held(&request.key, &digests);
    let dropped = dropped.map(|count| count as u32);
    Ok(answer(reply, dropped.map_err(|why| CallFailure::new(Status::Fault, why))))
}
