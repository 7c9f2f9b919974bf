//! Reports for people on why a key may do something, or may not.

use std::fmt::Write;
use std::sync::Arc;

use comity_keynote::{Assertion, ClauseReport, LinkReport, PreparedAssertion, Principal, Query};
use comity_keys::PublicKey;
use comity_vfs::{Handle, Result};

use crate::accounts::Accounts;
use crate::by_creation::ByCreation;
use crate::caller::KeyCaller;
use crate::evaluate::{self, Question, candidates};
use crate::grants::Grants;
use crate::held::Held;
use crate::memory::Memory;
use crate::revoke::leads;
use crate::root::Root;
use crate::scene::Scene;
use crate::server_key::ServerKey;
use crate::submission::{SubmitError, Submitted};
use crate::{Operation, Outcome};

/// Most characters of a clause that a report shows.
const CLAUSE_CHARS_MAX: usize = 400;

impl Grants {
    /// Returns whether the owner of a key may ask for the reasons of another key's rights. It may
    /// ask about itself and about keys to which its credentials lead.
    #[must_use]
    pub fn may_ask_about(&self, asker: &PublicKey, key: &PublicKey) -> bool {
        asker == key || leads(&self.read(), asker, key)
    }

    /// Reports which rights a key has to an object for an operation, and for each credential which
    /// rights it gives, or why it gives none.
    ///
    /// # Errors
    /// [`comity_vfs::Status`] if the directories above the object cannot be found.
    pub fn why(
        &self,
        caller: &KeyCaller,
        scene: &Scene<'_>,
        object: &Handle,
        operation: Operation,
    ) -> Result<String> {
        let now = self.now();
        let within = self.ancestry().within(scene.tree, object, now)?.directories;
        let question = Question::new(caller, scene, (object, &within), operation, now);
        let (accounts, memory) = (self.accounts(), self.read());
        let (verdict, reasons) = self.reasons((&accounts, &memory), scene, &question);
        let name = operation.name();
        Ok(format!("{name} of {}: {verdict}\n{reasons}", question.object_text()))
    }

    /// Returns the verdict on a question, and the reasons.
    fn reasons(
        &self,
        (accounts, memory): (&Accounts, &Memory),
        scene: &Scene<'_>,
        question: &Question<'_>,
    ) -> (String, String) {
        let (found, mut verdict, mut reasons) = (candidates(memory, question), None, String::new());
        let roots = Root::all(&found, accounts, (scene, question.caller));
        for root in &roots {
            let usable = evaluate::usable(&found, &memory.revocations, root);
            let (rights, _) = evaluate::rights(&usable, root, question);
            if question.operation.is_allowed(rights) {
                verdict.get_or_insert_with(|| format!("allowed, as user {}", root.account().user));
            }
            let _ = writeln!(reasons, "  from {}: {rights}", root.shown());
            reasons += &links(&usable, root, question);
        }
        let server = self.server_key.as_ref().map(ServerKey::public);
        let by_creation = ByCreation { memory, accounts, server }.first(scene, question);
        if let Some(found) = &by_creation {
            let (user, creator) = (&found.root.account().user, found.creator);
            verdict.get_or_insert_with(|| format!("allowed, as user {user}"));
            let from = found.root.shown();
            let _ =
                writeln!(reasons, "  made by key {creator}, which may create here, from {from}");
        }
        if roots.is_empty() && by_creation.is_none() {
            reasons += "  none of the credentials for it was signed by a user of this server\n";
        }
        for held in found.iter().filter(|held| memory.listed(question.caller.key, held).revoked) {
            let _ = writeln!(reasons, "  {} was revoked", held.digest());
        }
        (verdict.unwrap_or_else(|| "denied".to_owned()), reasons)
    }

    /// Remembers the outcome of a key's last submission, for a client that received only an error
    /// number.
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
    let signer = &one.authorizer;
    let outcome = match one.outcome {
        Outcome::Held => "is held",
        Outcome::Known => "was held before",
        Outcome::Revoked => "was revoked",
        Outcome::Ended => "has ended",
        Outcome::NoAccount => {
            &format!("gives nothing: no user of this server leads to its signer {signer}")
        }
        Outcome::NotYours => {
            &format!("gives nothing: it does not lead to your key; its signer is {signer}")
        }
    };
    format!("credential {} {outcome}\n", one.digest)
}

/// The rights that each assertion gives, and the clauses that decided.
fn links(usable: &[&Arc<Held>], root: &Root<'_>, question: &Question<'_>) -> String {
    let requesters = [Principal::Key(question.caller.key)];
    let query = Query { requesters: &requesters, attributes: question };
    let assertions = evaluate::assertions(usable, root);
    let Ok((_, reports)) = query.explain(assertions.iter().copied()) else {
        return "    these credentials exceed the evaluation limit, so they give nothing\n"
            .to_owned();
    };
    let policies = root.assertions().iter().map(|_| "the policy".to_owned());
    let signed = usable.iter().map(|held| format!("{} of key {}", held.digest(), held.signer()));
    let named = policies.chain(signed).zip(assertions.iter().zip(reports));
    named.map(|(name, (assertion, report))| link(&name, assertion, &report)).collect()
}

fn link(name: &str, assertion: &PreparedAssertion, report: &LinkReport) -> String {
    let mut text = format!("    {name} gives {}", report.rights());
    if report.licensees.is_none() {
        text += ": the keys that it names do not lead to the key that asks";
    }
    text.push('\n');
    let source = assertion.assertion();
    for clause in &report.clauses {
        let verdict = match &clause.verdict {
            Ok(rights) => rights.to_string(),
            Err(reason) => reason.to_string(),
        };
        let lines = source_lines(source, clause);
        let _ = writeln!(text, "      line {}: {verdict}\n        {lines}", clause.line);
    }
    text
}

/// The lines of a clause as they are written, from the one at which it begins.
fn source_lines(assertion: &Assertion, clause: &ClauseReport) -> String {
    let at = clause.line.saturating_sub(assertion.first_line());
    let mut lines = Vec::new();
    for line in assertion.text().lines().skip(at as usize).map(str::trim) {
        lines.push(line);
        if line.ends_with(';') {
            break;
        }
    }
    let text = lines.join(" ");
    let cut: String = text.chars().take(CLAUSE_CHARS_MAX).collect();
    if cut.len() < text.len() { cut + "..." } else { cut }
}
