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
    let heads = answer["heads"].as_array().into_iter().flatten();
    let heads: Vec<&str> = heads.map(|head| text(&head["head"])).collect();
    lines.push(format!("heads: {}", heads.join(", ")));
    lines.extend(answer["exports"].as_array().into_iter().flatten().map(export_line));
    lines
}

fn export_line(export: &Value) -> String {
    let head = export["head"].as_str().unwrap_or("none");
    let grace = match export["grace_left_seconds"].as_u64() {
        Some(left) => format!(", in grace for {left} s at most"),
        None => String::new(),
    };
    format!("{}: {head}{grace}", text(&export["export"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_export_is_shown_with_its_head() {
        let answer = json!({
            "head": "a", "etcd": "etcd at http://x:1", "lease_left_seconds": 7,
            "heads": [{ "head": "a" }, { "head": "b" }],
            "exports": [
                { "export": "/srv/x", "head": "b", "grace_left_seconds": 3 },
                { "export": "/srv/y", "head": null, "grace_left_seconds": null },
            ],
        });
        let expected = [
            "head a at etcd at http://x:1, with 7 s of its lease left",
            "heads: a, b",
            "/srv/x: b, in grace for 3 s at most",
            "/srv/y: none",
        ];
        assert_eq!(lines(&answer), expected);
    }
}
