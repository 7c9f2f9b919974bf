//! `comity load advise`.

mod auto;

use std::process::ExitCode;

use anyhow::Result;
use comity_server::control::Request;
use serde_json::Value;

use crate::clients::text;
use crate::control_client::{follow, run_number};
use crate::load_arguments::AdviseArguments;
use crate::placement_pages::items;
use crate::stdout::say;

/// Shows what moves of exports would change; with --auto, makes those that pay.
///
/// # Errors
/// If no server can be asked, or there is no such peer.
pub(crate) fn perform(typed: &AdviseArguments) -> Result<ExitCode> {
    if typed.auto {
        return auto::run(typed);
    }
    let answer = advice(typed)?;
    match typed.json.json {
        true => say(&answer),
        false => lines(&answer).iter().for_each(say),
    }
    let is_known = items(&answer["peers"]).any(|peer| !peer["load"].is_null());
    Ok(if is_known { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Asks the server until it has asked its peers, and returns the advice.
fn advice(typed: &AdviseArguments) -> Result<Value> {
    let request = Request::Advise { with: typed.with.clone(), run: run_number()? };
    follow(&typed.state, &request, "asking", |_| {})
}

/// The loads, the moves, and the advice in the last line.
fn lines(answer: &Value) -> Vec<String> {
    let mut lines = vec![format!("this server: {}", load(&answer["here"]))];
    for peer in items(&answer["peers"]) {
        let name = text(&peer["peer"]);
        lines.push(match peer["load"].is_null() {
            true => format!("{name}: its load is not known: {}", text(&peer["failed"])),
            false => format!("{name}: {}", load(&peer["load"])),
        });
    }
    items(&answer["moves"]).for_each(|one| lines.extend(move_lines(one)));
    lines.push(conclusion(answer));
    lines
}

fn load(load: &Value) -> String {
    let number = |name: &str| load[name].as_f64().unwrap_or_default();
    format!(
        "{} {:.0} % in use, calls take {:.1} times as long as on an idle server, {:.0} calls/s",
        text(&load["resource"]),
        number("ratio") * 100.0,
        number("slowdown"),
        number("calls_per_second"),
    )
}

fn move_lines(one: &Value) -> Vec<String> {
    let exports = exports(one);
    let name = format!("{exports} to {}", text(&one["to"]));
    let mut lines = vec![match one["gain"].is_null() {
        true => format!("{name}: what a move would change is not known"),
        false => format!(
            "{name}: calls get {} for its clients, {} for those that stay, {} there; {} in all",
            change(&one["gain_moved"]),
            change(&one["gain_staying"]),
            change(&one["gain_there"]),
            change(&one["gain_all"]),
        ),
    }];
    if let Some(obstacle) = one["obstacle"].as_str() {
        lines.push(format!("  cannot move: {obstacle}"));
    }
    let notes = [("doubt", &one["doubts"]), ("warning", &one["warnings"])];
    for (kind, texts) in notes {
        lines.extend(items(texts).map(|note| format!("  {kind}: {}", text(note))));
    }
    lines
}

fn exports(one: &Value) -> String {
    items(&one["exports"]).map(text).collect::<Vec<_>>().join(" ")
}

/// Names a part by which calls get shorter.
fn change(part: &Value) -> String {
    let percent = part.as_f64().unwrap_or_default() * 100.0;
    match percent {
        percent if percent.abs() < 0.5 => "no shorter".to_owned(),
        percent if percent < 0.0 => format!("{:.0} % longer", -percent),
        percent => format!("{percent:.0} % shorter"),
    }
}

/// The advice is the first of the moves that pay, as the most useful one comes first.
fn conclusion(answer: &Value) -> String {
    if let Some(best) = items(&answer["moves"]).find(|one| one["pays"] == true) {
        let is_doubtful = items(&best["doubts"]).next().is_some();
        let doubt = if is_doubtful { " (in doubt, see above)" } else { "" };
        return format!(
            "advice: comity migrate {} --to {}{doubt}",
            exports(best),
            text(&best["to"])
        );
    }
    if items(&answer["moves"]).next().is_none() {
        return "no advice: there is no export here that could move to a peer whose load is known"
            .to_owned();
    }
    let are_all = |is_so: fn(&Value) -> bool| items(&answer["moves"]).all(is_so);
    if are_all(|one| one["gain"].is_null()) {
        return "no advice: what moves would change is not known".to_owned();
    }
    if are_all(|one| one["obstacle"].is_string()) {
        return "no advice: the exports cannot move, see above".to_owned();
    }
    "advice: leave the exports where they are".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn busy(resource: &str, ratio: f64) -> Value {
        json!({
            "resource": resource, "ratio": ratio, "slowdown": 1.0 / (1.0 - ratio),
            "calls_per_second": 12.0, "sampled_seconds": 300,
        })
    }

    fn one(gain: Option<f64>, pays: bool) -> Value {
        json!({
            "exports": ["/srv/a", "/srv/b"], "to": "b", "gain": gain, "gain_all": gain,
            "gain_moved": gain, "gain_staying": 0.001, "gain_there": -0.05, "pays": pays,
            "doubts": ["so so"], "warnings": [], "obstacle": null,
        })
    }

    fn answer(moves: &[Value]) -> Value {
        let peers = [
            json!({ "peer": "b", "load": busy("network send", 0.25), "failed": null }),
            json!({ "peer": "c", "load": null, "failed": "it is away" }),
        ];
        json!({ "here": busy("processor", 0.8), "peers": peers, "moves": moves })
    }

    #[test]
    fn loads_moves_and_advice_are_told_in_words() {
        let expected = [
            "this server: processor 80 % in use, calls take 5.0 times as long as on an idle \
             server, 12 calls/s",
            "b: network send 25 % in use, calls take 1.3 times as long as on an idle server, \
             12 calls/s",
            "c: its load is not known: it is away",
            "/srv/a /srv/b to b: calls get 40 % shorter for its clients, no shorter for those \
             that stay, 5 % longer there; 40 % shorter in all",
            "  doubt: so so",
            "advice: comity migrate /srv/a /srv/b --to b (in doubt, see above)",
        ];
        assert_eq!(lines(&answer(&[one(Some(0.4), true)])), expected);
    }

    #[test]
    fn no_advice_says_whether_it_is_better_to_stay_or_not_known() {
        let last = |moves: &[Value]| lines(&answer(moves)).pop().unwrap();
        assert_eq!(last(&[one(Some(0.05), false)]), "advice: leave the exports where they are");
        assert!(last(&[one(None, false)]).starts_with("no advice: what moves would change"));
        assert!(last(&[]).starts_with("no advice: there is no export"));
    }
}
