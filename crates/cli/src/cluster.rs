//! `comity cluster`.

use std::process::ExitCode;

use anyhow::Result;
use comity_server::control::Request;
use serde_json::Value;

use crate::clients::text;
use crate::cluster_arguments::ClusterStatus;
use crate::control_client;
use crate::stdout::say;

/// Prints the heads of a cluster and the exports with their heads.
///
/// # Errors
/// If no head can be asked.
pub(crate) fn print(typed: ClusterStatus) -> Result<ExitCode> {
    let answer = control_client::ask(typed.state, &Request::Cluster)?;
    match typed.json.json {
        true => say(&answer),
        false => lines(&answer).iter().for_each(say),
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(answer: &Value) -> Vec<String> {
    let own = text(&answer["head"]);
    let mut lines = vec![format!(
        "head {own} at {}, with {} s of its lease left",
        text(&answer["etcd"]),
        answer["lease_left_seconds"]
    )];
    let heads: Vec<&Value> = answer["heads"].as_array().into_iter().flatten().collect();
    let shown: Vec<String> = heads.iter().map(|head| head_with_state(head)).collect();
    lines.push(format!("heads: {}", shown.join(", ")));
    let drained = answer["drained"].as_array().into_iter().flatten();
    let absent = drained.filter(|name| !heads.iter().any(|head| head["head"] == **name));
    lines.extend(absent.map(|name| format!("{} is drained, and is not up", text(name))));
    lines.extend(answer["exports"].as_array().into_iter().flatten().map(export_line));
    lines.extend(answer["addresses"].as_array().into_iter().flatten().map(address_line));
    lines
}

fn head_with_state(head: &Value) -> String {
    let drained = if head["is_drained"] == true { " (drained)" } else { "" };
    format!("{}{drained}", text(&head["head"]))
}

fn address_line(address: &Value) -> String {
    format!("{}: {}", text(&address["address"]), address["head"].as_str().unwrap_or("none"))
}

fn export_line(export: &Value) -> String {
    let head = export["head"].as_str().unwrap_or("none");
    let grace = match export["grace_left_seconds"].as_u64() {
        Some(left) => format!(", in grace for {left} s at most"),
        None => String::new(),
    };
    let stays = export["stays_because"].as_str();
    let stays = stays.map(|why| format!(", and stays there: {why}")).unwrap_or_default();
    format!("{}: {head}{grace}{stays}", text(&export["export"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_export_and_each_address_is_shown_with_its_head() {
        let answer = json!({
            "head": "a", "etcd": "etcd at http://x:1", "lease_left_seconds": 7,
            "heads": [{ "head": "a" }, { "head": "b", "is_drained": true }],
            "drained": ["b", "c"],
            "exports": [
                { "export": "/srv/x", "head": "b", "grace_left_seconds": 3 },
                { "export": "/srv/z", "head": "b", "stays_because": "a host has locks" },
                { "export": "/srv/y", "head": null, "grace_left_seconds": null },
            ],
            "addresses": [{ "address": "192.0.2.7", "head": "b", "is_here": false }],
        });
        let expected = [
            "head a at etcd at http://x:1, with 7 s of its lease left",
            "heads: a, b (drained)",
            "c is drained, and is not up",
            "/srv/x: b, in grace for 3 s at most",
            "/srv/z: b, and stays there: a host has locks",
            "/srv/y: none",
            "192.0.2.7: b",
        ];
        assert_eq!(lines(&answer), expected);
    }
}
