//! Why a client gets what it gets, as the server itself decides it: `comity explain`.

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use comity_export::{Decision, Explanation, Plan, Question, Refusal, Source, explain};
use comity_nfs3::nfsstat3;
use comity_server::control::Request;
use comity_vfs::{Cred, Gid, Uid};
use serde_json::{Value, json};

use crate::configuration::Configuration;
use crate::said::say;
use crate::{arguments, findings, remote, settings};

/// Explains a call by a configuration, or by what a running server has in force.
///
/// # Errors
/// If no server can be asked. A configuration that is refused is told in the exit code.
pub(crate) fn show(typed: arguments::Explain) -> Result<ExitCode> {
    let sources = settings::files(&typed.source);
    let live = typed.live || sources.is_empty();
    let json = typed.json.json;
    let state = typed.state.clone();
    let request = request(typed);
    let answer = match live {
        true => remote::ask(state, &request)?,
        false => match by_configuration(sources, &request)? {
            Ok(answer) => answer,
            Err(code) => return Ok(code),
        },
    };
    print(&answer, json);
    Ok(if answer["granted"] == true { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a plan would do with a call, for programs.
///
/// # Errors
/// If there is no such call.
pub(crate) fn value(plan: &Plan, asked: &Request) -> Result<Value> {
    let Explanation { decisions, answer } = explain(plan, &question(asked)?);
    let decisions: Vec<Value> = decisions.iter().map(shown).collect();
    let (name, text) = ending(&answer);
    let granted = answer.is_ok();
    Ok(json!({ "decisions": decisions, "granted": granted, "status": name, "text": text }))
}

fn request(typed: arguments::Explain) -> Request {
    Request::Explain {
        export: typed.export,
        path: typed.path,
        from: typed.from,
        uid: typed.uid,
        gid: typed.gid,
        groups: typed.groups,
        operation: typed.op.to_string(),
    }
}

fn question(asked: &Request) -> Result<Question> {
    let Request::Explain { export, path, from, uid, gid, groups, operation } = asked else {
        return Err(anyhow!("that is no question about a call"));
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

fn by_configuration(
    sources: Vec<Source>,
    request: &Request,
) -> Result<std::result::Result<Value, ExitCode>> {
    match Configuration::to_look_at(sources).load(None) {
        Ok((plan, _)) => value(&plan, request).map(Ok),
        Err(found) => Ok(Err(findings::refused(&found))),
    }
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

/// What a client of NFSv3 is told, and the same in words.
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
    }
}

fn print(answer: &Value, json: bool) {
    if json {
        say(answer);
        return;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    for decision in answer["decisions"].as_array().into_iter().flatten() {
        let place = match &decision["place"] {
            Value::String(place) => format!("  [{place}]"),
            _ => String::new(),
        };
        say(format_args!("{:<20} {}{place}", text(&decision["about"]), text(&decision["text"])));
    }
    say(format_args!("{:<20} {}: {}", "answer", text(&answer["status"]), text(&answer["text"])));
}
