//! Explains the decisions of a plan about one call, one by one, with the code that serves calls.

mod ids;
mod object;

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use comity_credential::Credential;
use comity_vfs::{Cred, Status, Wire};

use crate::export::Entry;
use crate::key_identity::KeyIdentity;
use crate::resolved_caller::ResolvedCaller;
use crate::{Channels, Export, Location, Plan, Referred, Refusal, RuleSource, Rules, View};

/// An operation on an object that can be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Look at its attributes.
    Stat,
    /// Read a file.
    Read,
    /// Change a file, or the entries of a directory.
    Write,
    /// Execute a file, or search a directory.
    Execute,
    /// List a directory.
    List,
}

impl Operation {
    /// All operations, and their names.
    pub const NAMES: [(&str, Self); 5] = [
        ("stat", Self::Stat),
        ("read", Self::Read),
        ("write", Self::Write),
        ("execute", Self::Execute),
        ("list", Self::List),
    ];
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(name, _)| *name == text);
        let names = || Self::NAMES.map(|(name, _)| name).join(", ");
        found.map(|(_, one)| *one).ok_or_else(|| format!("{text:?} is none of {}", names()))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::NAMES.iter().find(|(_, one)| one == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

/// A call to be explained.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The path of the export.
    pub export: PathBuf,
    /// The path of the object: below the export's path, or relative to the export.
    pub path: PathBuf,
    /// The address of the client; the port is assumed to be allowed.
    pub from: IpAddr,
    /// The ids of the credential.
    pub caller: Cred<Wire>,
    /// The operation.
    pub operation: Operation,
}

/// One decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// The subject of the decision.
    pub about: &'static str,
    /// The decision and its reason.
    pub text: String,
    /// The location of the rule, if it is written anywhere.
    pub place: Option<Location>,
}

/// The decisions about a call, in their order, and its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The decisions that were made before the outcome.
    pub decisions: Vec<Decision>,
    /// The outcome of the operation.
    pub answer: Result<(), Refusal>,
}

/// Explains what a plan would do with a call, without doing it: nothing is changed, and at most one
/// byte of a file is read. Waits for the name of the client if it is needed. Links are not
/// followed, because clients follow links themselves.
#[must_use]
pub fn explain(plan: &Plan, question: &Question) -> Explanation {
    let mut chain = Chain(Vec::new());
    let answer = chain.follow(plan, question);
    Explanation { decisions: chain.0, answer }
}

/// The decisions so far.
struct Chain(Vec<Decision>);

type Answer = Result<(), Refusal>;

impl Chain {
    fn add(&mut self, about: &'static str, text: impl Into<String>, place: Option<&Location>) {
        self.0.push(Decision { about, text: text.into(), place: place.cloned() });
    }

    fn follow(&mut self, plan: &Plan, question: &Question) -> Answer {
        let export = self.export(plan, &question.export)?;
        let (rules, origin) = self.client((plan, export), question.from)?;
        self.ids(rules, origin, &question.caller);
        let claimed = Credential::Sys(question.caller.clone());
        let resolved = ResolvedCaller::of(
            export,
            rules,
            (question.from, &KeyIdentity::None(None)),
            &claimed,
            &Arc::default(),
        );
        let resolved = resolved.inspect_err(|_| self.add("caller", "is refused", None))?;
        if let Some(referral) = export.referral() {
            let place = origin.and_then(|origin| origin.option("refer"));
            self.add("refer", format!("NFSv4 clients are referred to {referral}"), place);
            return Err(Refusal::Referred(Referred::to(export.id())));
        }
        let path = question.path.strip_prefix(&question.export).unwrap_or(&question.path);
        let view = View::of(plan, Arc::new(resolved));
        self.acting(&view);
        Ok(self.object(&view, origin, path, question.operation)?)
    }

    fn export<'p>(&mut self, plan: &'p Plan, path: &Path) -> Result<&'p Arc<Export>, Status> {
        let shown = path.display();
        match plan.export_at(path) {
            None => self.add("export", format!("nothing is exported as {shown}"), None),
            Some(export) if !export.is_mounted() => {
                self.add("export", format!("{shown} waits for its mount point"), None);
            }
            Some(export) => {
                self.add("export", shown.to_string(), None);
                return Ok(export);
            }
        }
        Err(Status::Acces)
    }

    fn client<'p>(
        &mut self,
        (plan, export): (&Plan, &'p Export),
        from: IpAddr,
    ) -> Result<(&'p Arc<Rules>, Option<&'p RuleSource>), Status> {
        plan.learn_name(from);
        match export.decide(from) {
            Ok(Entry { client, rules, origin, .. }) => {
                let domain = origin.and_then(|origin| origin.domain.as_ref());
                let domain = domain.map(|name| format!(" of domain {name}")).unwrap_or_default();
                let port = if rules.secure { ", from a port below 1024" } else { "" };
                let channels = match rules.channels {
                    Channels::ALL => String::new(),
                    channels => format!(", by xprtsec={channels} only"),
                };
                let text = format!("{from} comes in as {client}{domain}{port}{channels}");
                self.add("client", text, origin.map(|origin| &origin.place));
                Ok((rules, origin))
            }
            Err(status) => {
                let text = match status {
                    Status::Acces => format!("no entry of the export is for {from}"),
                    _ => format!("the name of {from} cannot be told now"),
                };
                self.add("client", text, None);
                Err(status)
            }
        }
    }
}
