//! `comity submit`.

use std::process::ExitCode;

use anyhow::Result;
use comity_keynote::AssertionDigest;
use comity_programs::whole;
use comity_proto::grants::{Outcome, SUBMISSION_BYTES_MAX, SubmitOk, procedure};
use comity_xdr::{Counted, Decoder, Opaque};
use serde_json::{Value, json};

use super::server::{connect, read};
use crate::key_arguments::server::Submit;
use crate::stdout::say;

/// A credential that was submitted.
struct CredentialOutcome {
    digest: AssertionDigest,
    /// The key that signed it.
    signer: String,
    outcome: Outcome,
}

/// Submits credentials; fails if the server keeps none of them.
pub(crate) fn submit(typed: &Submit) -> Result<ExitCode> {
    let text = read(&typed.files)?;
    let submission: Opaque<'_, SUBMISSION_BYTES_MAX> = Opaque(text.as_bytes());
    let submitted = connect(&typed.server)?.call(procedure::SUBMIT, &submission, submitted)?;
    if typed.json.json {
        say(submitted.iter().map(CredentialOutcome::json).collect::<Value>());
    } else {
        submitted.iter().for_each(|one| say(one.line()));
    }
    let is_held = |one: &CredentialOutcome| matches!(one.outcome, Outcome::Held | Outcome::Known);
    let held = submitted.iter().any(is_held);
    Ok(if held { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn submitted(reply: &mut Decoder<'_>) -> Option<Vec<CredentialOutcome>> {
    let Counted(submitted) = whole::<SubmitOk<'_>>(reply)?;
    let one = |one: &comity_proto::grants::Submitted<'_>| CredentialOutcome {
        digest: AssertionDigest::from_bytes(one.digest),
        signer: String::from_utf8_lossy(one.authorizer.0).into_owned(),
        outcome: one.outcome,
    };
    Some(submitted.iter().map(one).collect())
}

impl CredentialOutcome {
    /// The digest and the outcome. For a credential that gives nothing, a second line names the key
    /// at which its chain is broken.
    fn line(&self) -> String {
        let mut line = format!("{}  {}", self.digest, outcome_name(self.outcome));
        if let Some(missing) = self.missing() {
            line += "\n  ";
            line += &missing;
        }
        line
    }

    /// The credential that would complete the chain.
    fn missing(&self) -> Option<String> {
        let signer = &self.signer;
        match self.outcome {
            Outcome::NoAccount => {
                Some(format!("submit the credential by which {signer} received its rights, too"))
            }
            Outcome::NotYours => Some(format!(
                "{signer} gives it to other keys: submit those that lead on to yours, too"
            )),
            Outcome::Held | Outcome::Known | Outcome::Revoked | Outcome::Ended => None,
        }
    }

    fn json(&self) -> Value {
        let (digest, outcome) = (self.digest.to_string(), outcome_name(self.outcome));
        let missing = self.missing();
        json!({ "digest": digest, "signer": self.signer, "outcome": outcome, "missing": missing })
    }
}

const fn outcome_name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Held => "held",
        Outcome::Known => "held before",
        Outcome::Revoked => "revoked",
        Outcome::Ended => "ended",
        Outcome::NoAccount => "gives nothing: no user of the server leads to its signer",
        Outcome::NotYours => "gives nothing: it does not lead to your key",
    }
}
