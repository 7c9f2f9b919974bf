//! SUBMIT: stores credentials for the caller's key.

use comity_grants::{Outcome, SubmitError};
use comity_programs::{CallFailure, answer, text};
use comity_proto::grants::{self, Status, SubmitOk};
use comity_rpc::Call;
use comity_xdr::{Counted, Encoder, Malformed, Opaque};

use crate::request::Request;

pub(crate) fn submit(
    request: &Request<'_>,
    call: &Call<'_>,
    reply: &mut Encoder,
) -> Result<u32, Malformed> {
    let Opaque(submission) = call.arguments::<Opaque<'_, { grants::SUBMISSION_BYTES_MAX }>>()?;
    let submitted = match std::str::from_utf8(submission) {
        Ok(submission) => request.grants.submit(request.key, submission).map_err(failure),
        Err(_) => Err(CallFailure::new(Status::Invalid, "the credentials are not UTF-8")),
    };
    let named: Vec<_> = submitted
        .iter()
        .flatten()
        .map(|one| (*one.digest.as_bytes(), one.authorizer.to_string(), outcome(one.outcome)))
        .collect();
    let listed = named.iter().map(|(digest, authorizer, outcome)| grants::Submitted {
        digest: *digest,
        authorizer: text(authorizer),
        outcome: *outcome,
    });
    let listed: SubmitOk<'_> = Counted(listed.collect());
    Ok(answer(reply, submitted.map(|_| listed)))
}

fn failure(error: SubmitError) -> CallFailure {
    let status = match error {
        SubmitError::Credential { .. } | SubmitError::Number(_) => Status::Invalid,
        SubmitError::Full(_) => Status::Full,
        SubmitError::Store(_) => Status::Fault,
    };
    CallFailure::new(status, error)
}

const fn outcome(outcome: Outcome) -> grants::Outcome {
    match outcome {
        Outcome::Held => grants::Outcome::Held,
        Outcome::Known => grants::Outcome::Known,
        Outcome::Revoked => grants::Outcome::Revoked,
        Outcome::Ended => grants::Outcome::Ended,
        Outcome::NoAccount => grants::Outcome::NoAccount,
        Outcome::NotYours => grants::Outcome::NotYours,
    }
}
