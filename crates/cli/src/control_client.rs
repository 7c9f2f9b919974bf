//! Asks a running server and prints its answer: `comity reload`, `comity status`, `comity log`, and
//! `comity exports` without a configuration.

use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use comity_daemon::control_socket;
use comity_server::control::{self, Answer, AskError, Request};
use rustix::rand::{GetRandomFlags, getrandom};
use serde_json::Value;

use crate::stdout::say;
use crate::{arguments, common_arguments, exports_command, settings};

/// Pause before a server is asked again.
const PAUSE: Duration = Duration::from_millis(20);

/// Makes a server read its configuration again; fails if the configuration is refused.
///
/// # Errors
/// If no server can be asked.
pub(crate) fn reload(typed: arguments::Running) -> Result<ExitCode> {
    let answer = ask(typed.state, &Request::Reload)?;
    let done = answer["ok"] == true;
    if typed.json.json {
        say(&answer);
    } else {
        tell_findings(&answer, done);
    }
    Ok(if done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Shows the status of a server.
///
/// # Errors
/// If no server can be asked.
pub(crate) fn status(typed: arguments::Running) -> Result<ExitCode> {
    let answer = ask(typed.state, &Request::Status)?;
    if typed.json.json {
        say(&answer);
    } else {
        lines(&answer).iter().for_each(say);
    }
    Ok(ExitCode::SUCCESS)
}

/// Changes or prints the log level of a server.
///
/// # Errors
/// If no server can be asked.
pub(crate) fn log(typed: arguments::Log) -> Result<ExitCode> {
    let is_question = typed.level.is_none();
    let answer = ask(typed.state, &Request::LogLevel { level: typed.level })?;
    if is_question {
        say(answer.as_str().unwrap_or_default());
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the exports that a client would see.
///
/// # Errors
/// If no server can be asked.
pub(crate) fn exports(
    state: common_arguments::StateFolderArguments,
    client: IpAddr,
    json: bool,
) -> Result<ExitCode> {
    let answer = ask(state, &Request::Exports { client: Some(client) })?;
    exports_command::print(&answer, json);
    Ok(ExitCode::SUCCESS)
}

/// Sends a request to the server that runs with a state folder.
///
/// # Errors
/// If no server answers there, or the server refuses the request.
pub(crate) fn ask(
    typed: common_arguments::StateFolderArguments,
    request: &Request,
) -> Result<Value> {
    let folder = settings::state_folder(typed.state_dir, rustix::process::geteuid().is_root())?;
    match control::ask(&control_socket(&folder)?, request) {
        Ok(Answer::Done(value)) => Ok(value),
        Ok(Answer::Failed(reason)) => bail!("{reason}"),
        Err(AskError::Absent { source, .. }) => Err(absent(&folder, &source)),
        Err(AskError::Silent(seconds)) => Err(anyhow!(
            "the server with the state folder {} did not answer within {seconds} s: it is stopped, \
             hangs or is overloaded; look at its process and its log, and start it anew if it does \
             not recover",
            folder.display()
        )),
        Err(AskError::Busy(seconds)) => Err(anyhow!(
            "the server with the state folder {} works, but did not finish within {seconds} s: it \
             looks up hosts or waits for data servers, for this command or another one; its log \
             tells what it does; it may still perform this command, so look at the result before \
             you repeat it",
            folder.display()
        )),
        Err(error) => Err(error.into()),
    }
}

/// Asks the server with the same request until the state in its answer is no longer `under_way`;
/// `each` gets every answer. Returns the last one.
///
/// # Errors
/// As [`ask`].
pub(crate) fn follow(
    state: &common_arguments::StateFolderArguments,
    request: &Request,
    under_way: &str,
    mut each: impl FnMut(&Value),
) -> Result<Value> {
    loop {
        let answer = ask(state.clone(), request)?;
        each(&answer);
        if answer["state"] != under_way {
            return Ok(answer);
        }
        thread::sleep(PAUSE);
    }
}

/// Returns a number that no other run of a command has.
///
/// # Errors
/// The system has no random bytes.
pub(crate) fn run_number() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom(&mut bytes, GetRandomFlags::empty())?;
    Ok(u64::from_ne_bytes(bytes))
}

/// The error for a server that does not answer, with advice.
fn absent(folder: &Path, error: &std::io::Error) -> anyhow::Error {
    let shown = folder.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => anyhow!(
            "no server runs with the state folder {shown}; start one, or name its folder with \
             --state-dir"
        ),
        ErrorKind::PermissionDenied => anyhow!(
            "no permission to talk to the server with the state folder {shown}; do it as the user \
             who runs it"
        ),
        _ => anyhow!("no server answers in the state folder {shown}: {error}"),
    }
}

fn tell_findings(answer: &Value, done: bool) {
    for finding in answer["findings"].as_array().into_iter().flatten() {
        eprintln!("{}", finding["shown"].as_str().unwrap_or_default());
    }
    match done {
        true => say(format_args!("reloaded; exports in force: {}", answer["exports"])),
        false => eprintln!("comity: refused; the old configuration stays in force"),
    }
}

/// Formats each fact of an answer as a line that begins with its name.
fn lines(answer: &Value) -> Vec<String> {
    let shown = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().unwrap_or_default());
            texts.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    let facts = answer.as_object().into_iter().flatten();
    facts.map(|(name, value)| format!("{name}: {}", shown(value))).collect()
}
