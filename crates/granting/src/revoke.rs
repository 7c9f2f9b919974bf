//! REVOKE: withdraws credentials that the caller signed, or that were signed below it.

use comity_grants::{Revocation, RevokeError, Revoker};
use comity_keynote::AssertionDigest;
use comity_programs::{CallFailure, answer};
use comity_proto::grants::{RevokeArgs, RevokeKind, Status};
use comity_rpc::Call;
use comity_xdr::{Encoder, Malformed};

use crate::answer::read;
use crate::request::Request;

pub(crate) fn revoke(
    request: &Request<'_>,
    call: &Call<'_>,
    reply: &mut Encoder,
) -> Result<u32, Malformed> {
    let args: RevokeArgs<'_> = call.arguments()?;
    let revoked = revocation(&args).and_then(|what| {
        let revoked = request.grants.revoke(Revoker::Key(request.key), &what);
        revoked.map(|revoked| revoked.len() as u32).map_err(failure)
    });
    Ok(answer(reply, revoked))
}

fn revocation(args: &RevokeArgs<'_>) -> Result<Revocation, CallFailure> {
    let text = read(&args.text)?;
    let invalid = |why: String| CallFailure::new(Status::Invalid, why);
    Ok(match args.kind {
        RevokeKind::Digest => {
            let digest = text.parse::<AssertionDigest>().map_err(|why| invalid(why.to_string()))?;
            Revocation::Credential(digest)
        }
        RevokeKind::Credential => Revocation::Text(text.to_owned()),
        RevokeKind::Key => Revocation::Key(text.parse().map_err(|why| invalid(format!("{why}")))?),
    })
}

fn failure(error: RevokeError) -> CallFailure {
    let status = match error {
        RevokeError::Unknown | RevokeError::NothingGiven => Status::NotFound,
        RevokeError::NotAbove | RevokeError::Stranger => Status::Denied,
        RevokeError::Credential(_) => Status::Invalid,
        RevokeError::KeyFull | RevokeError::KeysFull | RevokeError::AdministratorFull => {
            Status::Full
        }
        RevokeError::Store(_) => Status::Fault,
    };
    CallFailure::new(status, error)
}
