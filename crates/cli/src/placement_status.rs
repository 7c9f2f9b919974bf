//! `comity placement status`.

use std::process::ExitCode;

use anyhow::Result;
use comity_server::control::Request;
use serde_json::Value;

use crate::clients::{seconds, text};
use crate::control_client;
use crate::placement_arguments::PlacementArguments;
use crate::placement_pages::items;
use crate::stdout::say;

/// Shows the data servers of placements.
///
/// # Errors
/// If no server can be asked, or the export has no data servers.
pub(crate) fn print(typed: PlacementArguments) -> Result<ExitCode> {
    let request = Request::Placements { export: typed.export };
    let answer = control_client::ask(typed.state, &request)?;
    match typed.json.json {
        true => say(&answer),
        false => lines(&answer).iter().for_each(say),
    }
    Ok(ExitCode::SUCCESS)
}

fn lines(answer: &Value) -> Vec<String> {
    let placements: Vec<&Value> = items(&answer["placements"]).collect();
    if placements.is_empty() {
        return vec!["no export has data servers".to_owned()];
    }
    let rows: Vec<[String; 6]> = placements.into_iter().flat_map(rows).collect();
    let head = ["EXPORT", "SERVER", "ADDRESS", "STATE", "SINCE", "LAST ERROR"].map(str::to_owned);
    let all: Vec<&[String; 6]> = std::iter::once(&head).chain(&rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; 6] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut lines: Vec<String> = all.into_iter().map(|row| line(row, &widths)).collect();
    lines.push(format!("layouts that clients hold: {}", answer["layouts"]));
    lines
}

fn rows(placement: &Value) -> Vec<[String; 6]> {
    items(&placement["data_servers"])
        .map(|server| row(text(&placement["export"]), server))
        .collect()
}

fn row(export: &str, server: &Value) -> [String; 6] {
    [
        export.to_owned(),
        text(&server["name"]).to_owned(),
        text(&server["address"]).to_owned(),
        state(server),
        seconds(&server["since_seconds"]),
        server["last_error"].as_str().unwrap_or("-").to_owned(),
    ]
}

fn state(server: &Value) -> String {
    let link = if server["is_up"] == true { "up" } else { "down" };
    if server["is_draining"] == true { format!("{link}, draining") } else { link.to_owned() }
}

fn line(row: &[String; 6], widths: &[usize; 6]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_data_server_has_a_line_with_its_state_and_last_error() {
        let server = |name, is_up, error: Option<&str>| {
            json!({
                "name": name, "address": "192.0.2.1:2049", "is_up": is_up,
                "since_seconds": 130, "last_error": error,
            })
        };
        let servers = [server("a", true, None), server("second", false, Some("no route"))];
        let placement = json!({ "export": "/srv", "data_servers": servers });
        let shown = lines(&json!({ "placements": [placement], "layouts": 3 }));
        assert_eq!(
            shown,
            [
                "EXPORT  SERVER  ADDRESS         STATE  SINCE  LAST ERROR",
                "/srv    a       192.0.2.1:2049  up     2 min  -",
                "/srv    second  192.0.2.1:2049  down   2 min  no route",
                "layouts that clients hold: 3",
            ]
        );
        assert_eq!(lines(&json!({ "placements": [] })), ["no export has data servers"]);
    }
}
