//! The decisions of a plan about a call, with the rules that lead to them, as JSON.

use anyhow::{Result, anyhow};
use comity_export::{Decision, Explanation, Plan, Question, Refusal, explain};
use comity_nfs3::nfsstat3;
use comity_server::control::Request;
use comity_vfs::{Cred, Gid, Uid};
use serde_json::{Value, json};

/// Returns how a plan decides about a call.
///
/// # Errors
/// The request does not describe a call.
pub fn explanation_json(plan: &Plan, asked: &Request) -> Result<Value> {
    let Explanation { decisions, answer } = explain(plan, &question(asked)?);
    let decisions: Vec<Value> = decisions.iter().map(shown).collect();
    let (name, text) = ending(&answer);
    let granted = answer.is_ok();
    Ok(json!({ "decisions": decisions, "granted": granted, "status": name, "text": text }))
}

fn question(asked: &Request) -> Result<Question> {
    let Request::Explain { export, path, from, uid, gid, groups, operation } = asked else {
        return Err(anyhow!("the request is not about a call"));
    };
    let groups = groups.iter().copied().map(Gid::new);
    Ok(Question {
        export: export.clone(),
        path: path.clone(),
        from: *from,
        caller: Cred::new(Uid::new(*uid), Gid::new(*gid)).with_groups(groups),
        operation: operation.parse().map_err(|reason: String| anyhow!(reason))?,
    })
}

fn shown(decision: &Decision) -> Value {
    json!({
        "about": decision.about,
        "text": decision.text,
        "file": decision.place.as_ref().map(|place| &*place.file),
        "line": decision.place.as_ref().map(|place| place.line),
        "column": decision.place.as_ref().map(|place| place.column),
        "place": decision.place.as_ref().map(ToString::to_string),
    })
}

/// Returns the status that an NFSv3 client gets, as its name and in words.
fn ending(answer: &std::result::Result<(), Refusal>) -> (String, String) {
    match answer {
        Ok(()) => ("NFS3_OK".into(), "granted".into()),
        Err(Refusal::Status(status)) => {
            let name = format!("{:?}", nfsstat3(*status)).to_uppercase();
            (format!("NFS3ERR_{name}"), status.to_string())
        }
        Err(Refusal::Denied(reason)) => {
            let text = format!("the export does not take such a credential ({reason:?})");
            ("AUTH_ERROR".into(), text)
        }
        Err(Refusal::Referred(_)) => {
            let text = "other servers have its files, and NFSv3 cannot say which".to_owned();
            ("NFS3ERR_STALE".into(), text)
        }
    }
}
