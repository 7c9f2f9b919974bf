//! `comity reload`, `comity status` and `comity log`: what a running server is asked, and its answer
//! for people or programs.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use serde_json::Value;

use crate::control::{Request, ask};
use crate::{arguments, settings};

/// Makes a server read its configuration again; fails if that is refused.
///
/// # Errors
/// If no server can be asked.
pub(crate) fn reload(typed: arguments::Running) -> Result<ExitCode> {
    let answer = ask(&folder(typed.state)?, &Request::Reload)?;
    if typed.json.json {
        println!("{answer}");
    } else {
        tell_findings(&answer);
    }
    Ok(code(&answer))
}

/// Shows how a server is.
///
/// # Errors
/// If no server can be asked.
pub(crate) fn status(typed: arguments::Running) -> Result<ExitCode> {
    let answer = ask(&folder(typed.state)?, &Request::Status)?;
    if typed.json.json {
        println!("{answer}");
    } else {
        lines(&answer).iter().for_each(|line| println!("{line}"));
    }
    Ok(code(&answer))
}

/// Changes how much a server logs.
///
/// # Errors
/// If no server can be asked.
pub(crate) fn log(typed: arguments::Log) -> Result<ExitCode> {
    let answer = ask(&folder(typed.state)?, &Request::Log(typed.level))?;
    if let Some(error) = answer["error"].as_str() {
        eprintln!("comity: {error}");
    }
    Ok(code(&answer))
}

fn folder(typed: arguments::State) -> Result<PathBuf> {
    settings::state_folder(typed.state_dir, rustix::process::geteuid().is_root())
}

fn code(answer: &Value) -> ExitCode {
    if answer["ok"] == true { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn tell_findings(answer: &Value) {
    for finding in answer["findings"].as_array().into_iter().flatten() {
        eprintln!("{}", finding["shown"].as_str().unwrap_or_default());
    }
    match answer["ok"] == true {
        true => println!("reloaded: {} exports in force", answer["exports"]),
        false => eprintln!("comity: refused; the configuration before stays in force"),
    }
}

/// One line a fact, its name first.
fn lines(answer: &Value) -> Vec<String> {
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().unwrap_or_default());
            texts.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    let facts = answer.as_object().into_iter().flatten().filter(|(name, _)| *name != "ok");
    facts.map(|(name, value)| format!("{name}: {}", shown(value))).collect()
}
