//! Shows the clients of a running server and what they hold: `comity clients` and `comity evict`.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Result;
use comity_server::control::Request;
use serde_json::Value;

use crate::stdout::say;
use crate::{arguments, common_arguments, control_client};

/// Shows all clients, the state of one of them, or which clients wait for which. Answers are
/// printed as they arrive, so that memory does not grow with the number of clients.
///
/// # Errors
/// If no server can be asked, or there is no such client.
pub(crate) fn show(typed: arguments::Clients) -> Result<ExitCode> {
    let out = &mut io::stdout().lock();
    let shown = match (&typed.client, typed.waits, typed.json.json) {
        (client, true, json) => waits(&typed.state, client.clone(), json, out),
        (None, _, true) => all_json(&typed.state, out),
        (None, _, false) => all(&typed.state, out),
        (Some(client), _, true) => one_json(&typed.state, client, out),
        (Some(client), _, false) => one(&typed.state, client, out),
    };
    match shown {
        // A closed pipe is not an error.
        Err(error) if is_closed(&error) => Ok(ExitCode::SUCCESS),
        shown => shown.map(|()| ExitCode::SUCCESS),
    }
}

/// Evicts a client.
///
/// # Errors
/// If no server can be asked, or there is no such client.
pub(crate) fn evict(typed: arguments::Evict) -> Result<ExitCode> {
    let answer = control_client::ask(typed.state, &Request::Evict { client: typed.client })?;
    if typed.json.json {
        say(&answer);
        return Ok(ExitCode::SUCCESS);
    }
    let had = &answer["client"];
    say(format_args!(
        "evicted: {} from {}; freed opens: {}, locks: {}, delegations: {}, directories: {}",
        text(&had["client"]),
        text(&had["address"]),
        had["opens"],
        had["locks"],
        had["delegations"],
        had["directories"]
    ));
    Ok(ExitCode::SUCCESS)
}

const HEAD: &str = "\
CLIENT            NFS  ADDRESS          AGE      SILENT   SESSIONS  OPENS   LOCKS   DELEGATIONS  \
DIRECTORIES  STATE      NAME; WAITS FOR";

fn all(state: &common_arguments::StateFolderArguments, out: &mut impl Write) -> Result<()> {
    let mut head = format!("{HEAD}\n");
    each_page(state, |clients| {
        write!(out, "{}", std::mem::take(&mut head))?;
        tell(out, clients, row)
    })
}

fn all_json(state: &common_arguments::StateFolderArguments, out: &mut impl Write) -> Result<()> {
    let (mut begin, mut separator) = ("[", "");
    each_page(state, |clients| {
        write!(out, "{begin}")?;
        begin = "";
        for client in clients.as_array().into_iter().flatten() {
            write!(out, "{separator}{client}")?;
            separator = ",\n";
        }
        Ok(())
    })?;
    writeln!(out, "]")?;
    Ok(())
}

/// Requests the list of clients page by page; fails if no server answers.
fn each_page(
    state: &common_arguments::StateFolderArguments,
    mut each: impl FnMut(&Value) -> Result<()>,
) -> Result<()> {
    let mut after = None;
    loop {
        let answer = control_client::ask(state.clone(), &Request::Clients { after })?;
        each(&answer["clients"])?;
        match answer["next"].as_str() {
            Some(next) => after = Some(next.to_owned()),
            None => return Ok(()),
        }
    }
}

fn row(client: &Value) -> String {
    let time = |name: &str| seconds(&client[name]);
    let number = |name: &str| client[name].to_string();
    let mut line = format!(
        "{:<16}  {:<3}  {:<15}  {:<7}  {:<7}  {:<8}  {:<6}  {:<6}  {:<11}  {:<11}  {:<9}  {}",
        text(&client["client"]),
        text(&client["spoken"]),
        text(&client["address"]),
        time("age_seconds"),
        time("silent_seconds"),
        number("sessions"),
        number("opens"),
        number("locks"),
        number("delegations"),
        number("directories"),
        standing(client),
        text(&client["name"]),
    );
    if let Some(channel) = client["channel"].as_str() {
        line = format!("{line}; by {channel}");
    }
    let blockers = client["waits_for"].as_array().into_iter().flatten().map(text);
    let blockers: Vec<&str> = blockers.collect();
    if !blockers.is_empty() {
        line = format!("{line}; waits for {}", blockers.join(", "));
    }
    line
}

/// Returns the client's condition in a word, the worst first.
fn standing(client: &Value) -> &'static str {
    if client["confirmed"] != true {
        "new"
    } else if client["expired"] == true {
        "expired"
    } else if client["revoked"] != 0 {
        "revoked"
    } else if client["callbacks"] == "lost" {
        "unheard"
    } else {
        "active"
    }
}

fn one(
    state: &common_arguments::StateFolderArguments,
    client: &str,
    out: &mut impl Write,
) -> Result<()> {
    let first = each_state(state, client, |answer| {
        if answer["client"].is_object() {
            writeln!(out, "{HEAD}\n{}", row(&answer["client"]))?;
            tell(out, &answer["sessions"], session)?;
            tell(out, &answer["copies"], copy)?;
            tell(out, &answer["waits"], |waiting| format!("  {}", wait(waiting)))?;
        }
        tell(out, &answer["states"], held)
    })?;
    left_off(&first, out)
}

fn one_json(
    state: &common_arguments::StateFolderArguments,
    client: &str,
    out: &mut impl Write,
) -> Result<()> {
    let mut separator = "";
    each_state(state, client, |answer| {
        if answer["client"].is_object() {
            for name in ["client", "sessions", "copies", "waits", "waits_count"] {
                let begin = if name == "client" { "{" } else { ",\n" };
                write!(out, "{begin}\"{name}\":{}", answer[name])?;
            }
            write!(out, ",\n\"states\":[")?;
        }
        for state in answer["states"].as_array().into_iter().flatten() {
            write!(out, "{separator}{state}")?;
            separator = ",\n";
        }
        Ok(())
    })?;
    writeln!(out, "]}}")?;
    Ok(())
}

/// Requests the state of a client page by page; returns the first answer.
fn each_state(
    state: &common_arguments::StateFolderArguments,
    client: &str,
    mut each: impl FnMut(&Value) -> Result<()>,
) -> Result<Value> {
    let ask = |after| {
        control_client::ask(state.clone(), &Request::Client { client: client.to_owned(), after })
    };
    let first = ask(None)?;
    each(&first)?;
    let mut after = first["next"].as_u64();
    while let Some(last) = after {
        let answer = ask(u32::try_from(last).ok())?;
        each(&answer)?;
        after = answer["next"].as_u64();
    }
    Ok(first)
}

fn waits(
    state: &common_arguments::StateFolderArguments,
    client: Option<String>,
    json: bool,
    out: &mut impl Write,
) -> Result<()> {
    let answer = control_client::ask(state.clone(), &Request::Waits { client })?;
    if json {
        writeln!(out, "{answer}")?;
        return Ok(());
    }
    tell(out, &answer["waits"], wait)?;
    left_off(&answer, out)
}

/// Prints how many waiting clients were not shown.
fn left_off(answer: &Value, out: &mut impl Write) -> Result<()> {
    let shown = answer["waits"].as_array().map_or(0, Vec::len) as u64;
    let count = answer["waits_count"].as_u64().unwrap_or(0);
    if count > shown {
        writeln!(out, "and {} more wait", count - shown)?;
    }
    Ok(())
}

fn tell(out: &mut impl Write, items: &Value, line: impl Fn(&Value) -> String) -> Result<()> {
    for item in items.as_array().into_iter().flatten() {
        writeln!(out, "{}", line(item))?;
    }
    Ok(())
}

fn session(session: &Value) -> String {
    let back = if session["back_channel"] == true { "callbacks too" } else { "no callbacks" };
    format!(
        "  session {}: {} slots, {} connections, {back}, for {}",
        text(&session["session"]),
        session["slots"],
        session["connections"],
        seconds(&session["age_seconds"])
    )
}

/// A copy that the server makes for the client.
fn copy(copy: &Value) -> String {
    let (file, age) = (file(copy), seconds(&copy["age_seconds"]));
    format!("  {file}: {} bytes copied into it, for {age}", copy["copied_bytes"])
}

fn held(state: &Value) -> String {
    let what = match text(&state["kind"]) {
        "open" => {
            let deny = match text(&state["deny"]) {
                "" => String::new(),
                deny => format!(", denies others {deny}"),
            };
            format!("open for {}{deny}, by {}", text(&state["access"]), text(&state["owner"]))
        }
        "lock" => format!("{} by {}", ranges(state), text(&state["owner"])),
        "delegation" => match state["recalled_seconds"].as_u64() {
            Some(_) => format!(
                "{}, recalled {} ago",
                delegation(&state["access"]),
                seconds(&state["recalled_seconds"])
            ),
            None => delegation(&state["access"]),
        },
        "layout" => format!(
            "layout of {} ranges for reading and {} for reading and writing",
            state["read_ranges"], state["read_write_ranges"]
        ),
        _ => "delegation, revoked".to_owned(),
    };
    format!("  {}: {what}, for {}", file(state), seconds(&state["age_seconds"]))
}

fn delegation(access: &Value) -> String {
    match text(access) {
        "directory" => "directory delegation".to_owned(),
        access => format!("delegation for {access}"),
    }
}

fn ranges(state: &Value) -> String {
    let shown: Vec<String> = state["ranges"].as_array().into_iter().flatten().map(range).collect();
    let more = state["ranges_count"].as_u64().unwrap_or(0).saturating_sub(shown.len() as u64);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match shown.is_empty() {
        true => "no bytes locked".to_owned(),
        false => format!("locked {}{more}", shown.join(", ")),
    }
}

fn wait(waiting: &Value) -> String {
    let what = match text(&waiting["kind"]) {
        "lock" => format!("to lock {}", range(&waiting["range"])),
        _ => format!("for the {} to come back", delegation(&waiting["access"])),
    };
    let who = waiting["client"].as_str().unwrap_or("somebody without a client's number");
    let whom = waiting["waits_for"].as_str().unwrap_or("nobody, it may come");
    let (file, age) = (file(waiting), seconds(&waiting["age_seconds"]));
    format!("{who} waits for {whom}: {what}, {file}, for {age}")
}

fn range(range: &Value) -> String {
    let last = range["last"].as_u64().map_or_else(String::new, |last| last.to_string());
    format!("{}-{last} {}", range["first"], text(&range["access"]))
}

fn file(item: &Value) -> String {
    let export = item["export"].as_str().unwrap_or("an export that is gone");
    match item["fileid"].as_u64() {
        Some(fileid) => format!("{export} fileid {fileid}"),
        None => format!("{export}, a file that is gone"),
    }
}

/// A duration in seconds, minutes, hours or days.
pub(crate) fn seconds(value: &Value) -> String {
    let seconds = value.as_u64().unwrap_or(0);
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// The text of a value; empty if it is none.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_closed(error: &anyhow::Error) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    kind == Some(io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_copy_is_shown_with_its_file_and_how_far_it_is() {
        let told = json!({ "copied_bytes": 7, "age_seconds": 3, "export": "/srv", "fileid": 12 });
        assert_eq!(copy(&told), "  /srv fileid 12: 7 bytes copied into it, for 3 s");
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        let said = [0, 119, 120, 7199, 7200, 172_799, 172_800].map(|time| seconds(&time.into()));
        assert_eq!(said, ["0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d"]);
    }
}
