//! Reports for people: why a key may do something, or may not.

use std::fmt::Write;
use std::sync::Arc;

use comity_keynote::{LinkReport, Principal, Query};
use comity_keys::PublicKey;
use comity_vfs::{Handle, Result};

use crate::caller::KeyCaller;
use crate::evaluate::{self, Question};
use crate::grants::{Grants, candidates, roots};
use crate::held::Held;
use crate::scene::Scene;
use crate::submission::{SubmitError, Submitted};
use crate::{Operation, Outcome};

impl Grants {
    /// Tells which rights a key has to an object for an operation, and which credentials give them
    /// or give nothing and why.
    ///
    /// # Errors
    /// [`comity_vfs::Status`] if it cannot be found out what the object lies below.
    pub fn why(
        &self,
        caller: &KeyCaller,
        scene: &Scene<'_>,
        object: &Handle,
        operation: Operation,
    ) -> Result<String> {
        let now = self.now();
        let within = self.ancestry().within(scene.tree, object, now)?;
        let question = Question::new(caller, scene.path, object, &within, operation, now);
        let (accounts, memory) = (self.accounts(), self.read());
        let found = candidates(&memory, &question);
        let mut text = format!("{} of {}: ", operation.name(), question.object_text());
        let roots = roots(&found, &accounts);
        let mut verdict = "denied".to_owned();
        let mut reasons = String::new();
        for root in &roots {
            let usable = evaluate::usable(&found, &memory.revocations, root);
            let (rights, _) = evaluate::rights(&usable, root, &question);
            let user = accounts.get(root).map(|account| account.user.as_str()).unwrap_or_default();
            if operation.is_allowed(rights) && verdict == "denied" {
                verdict = format!("allowed, as user {user}");
            }
            let _ = writeln!(reasons, "  from user {user}, key {root}: {rights}");
            reasons += &links(&usable, &question);
        }
        if roots.is_empty() {
            reasons = "  no credential of a user of this server speaks of it\n".to_owned();
        }
        let revoked = found.iter().filter(|held| memory.listed(caller.key, held).revoked);
        for held in revoked {
            let _ = writeln!(reasons, "  {} was revoked", held.digest());
        }
        let _ = writeln!(text, "{verdict}");
        Ok(text + &reasons)
    }

    /// Remembers what became of the last submission of a key, for a client that was told no more
    /// than an error number.
    pub fn tell(
        &self,
        key: PublicKey,
        submitted: &std::result::Result<Vec<Submitted>, SubmitError>,
    ) {
        let text = match submitted {
            Ok(credentials) => credentials.iter().map(outcome_line).collect(),
            Err(error) => format!("nothing was taken: {error}\n"),
        };
        self.set_last_submission(key, text);
    }
}

fn outcome_line(one: &Submitted) -> String {
    let outcome = match one.outcome {
        Outcome::Held => "is held",
        Outcome::Known => "was held before",
        Outcome::Revoked => "was revoked",
        Outcome::Ended => "has ended",
        Outcome::NoAccount => "gives nothing: no user of this server leads to its signer",
        Outcome::NotYours => "gives nothing: it does not lead to your key",
    };
    format!("credential {} {outcome}\n", one.digest)
}

/// The rights that each credential gives, and the line that decided.
fn links(usable: &[&Arc<Held>], question: &Question<'_>) -> String {
    let requesters = [Principal::Key(question.caller.key)];
    let query = Query { requesters: &requesters, attributes: question };
    let assertions = usable.iter().map(|held| held.assertion.prepared());
    let Ok((_, reports)) = query.explain(assertions) else {
        return "    these credentials take too much work, so they give nothing\n".to_owned();
    };
    usable.iter().zip(reports).map(|(held, report)| link(held, &report)).collect()
}

fn link(held: &Held, report: &LinkReport) -> String {
    let mut text = format!("    {} gives {}", held.digest(), report.rights());
    if report.licensees.is_none() {
        text += ": the keys that it names have nothing to do with yours";
    }
    text.push('\n');
    for clause in &report.clauses {
        let _ = match &clause.verdict {
            Ok(rights) => writeln!(text, "      line {}: {rights}", clause.line),
            Err(reason) => writeln!(text, "      line {}: {reason}", clause.line),
        };
    }
    text
}
