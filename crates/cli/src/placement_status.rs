//! `comity placement status`.

use std::process::ExitCode;

use anyhow::Result;
use comity_server::control::Request;
use serde_json::Value;

use crate::cache_status::{bytes, counted};
use crate::clients::{seconds, text};
use crate::control_client;
use crate::placement_arguments::PlacementArguments;
use crate::placement_pages::items;
use crate::stdout::say;

const COLUMNS: usize = 8;

const HEAD: ServerCells<&str> =
    ["EXPORT", "SERVER", "ADDRESS", "STATE", "SINCE", "FREE", "TOTAL", "LAST ERROR"];

/// The cells of a line.
type ServerCells<T = String> = [T; COLUMNS];

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
    let rows: Vec<ServerCells> = placements.into_iter().flat_map(rows).collect();
    let head = HEAD.map(str::to_owned);
    let all: Vec<&ServerCells> = std::iter::once(&head).chain(&rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max();
    let widths: [usize; COLUMNS] = std::array::from_fn(|column| width(column).unwrap_or(0));
    let mut lines: Vec<String> = all.into_iter().map(|row| line(row, &widths)).collect();
    lines.push(format!("layouts that clients hold: {}", answer["layouts"]));
    lines.extend(items(&answer["placements"]).flat_map(degraded));
    lines
}

/// Lines about data servers with broken mirrors.
fn degraded(placement: &Value) -> impl Iterator<Item = String> {
    items(&placement["data_servers"]).filter_map(|server| {
        let count = server["broken_files"].as_u64().filter(|count| *count > 0)?;
        let (export, name) = (text(&placement["export"]), text(&server["name"]));
        let files = counted(count, "file");
        Some(format!(
            "{export}: {files} without a mirror on {name}; `comity placement resilver` makes one"
        ))
    })
}

fn rows(placement: &Value) -> Vec<ServerCells> {
    items(&placement["data_servers"])
        .map(|server| row(text(&placement["export"]), server))
        .collect()
}

fn row(export: &str, server: &Value) -> ServerCells {
    [
        export.to_owned(),
        text(&server["name"]).to_owned(),
        text(&server["address"]).to_owned(),
        state(server),
        seconds(&server["since_seconds"]),
        space(&server["free_bytes"]),
        space(&server["total_bytes"]),
        server["last_error"].as_str().unwrap_or("-").to_owned(),
    ]
}

fn state(server: &Value) -> String {
    let link = if server["is_up"] == true { "up" } else { "down" };
    if server["is_draining"] == true { format!("{link}, draining") } else { link.to_owned() }
}

fn space(value: &Value) -> String {
    value.as_u64().map_or_else(|| "-".to_owned(), bytes)
}

fn line(row: &ServerCells, widths: &[usize; COLUMNS]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_data_server_has_a_line_with_its_state_and_last_error() {
        let server = |name, is_up: bool, error: Option<&str>| {
            json!({
                "name": name, "address": "192.0.2.1:2049", "is_up": is_up,
                "since_seconds": 130, "last_error": error,
                "free_bytes": is_up.then_some(3_u64 << 30),
                "total_bytes": is_up.then_some(4_u64 << 40),
            })
        };
        let servers = [server("a", true, None), server("second", false, Some("no route"))];
        let placement = json!({ "export": "/srv", "data_servers": servers });
        let shown = lines(&json!({ "placements": [placement], "layouts": 3 }));
        assert_eq!(
            shown,
            [
                "EXPORT  SERVER  ADDRESS         STATE  SINCE  FREE     TOTAL    LAST ERROR",
                "/srv    a       192.0.2.1:2049  up     2 min  3.0 GiB  4.0 TiB  -",
                "/srv    second  192.0.2.1:2049  down   2 min  -        -        no route",
                "layouts that clients hold: 3",
            ]
        );
        assert_eq!(lines(&json!({ "placements": [] })), ["no export has data servers"]);
    }

    #[test]
    fn a_data_server_with_broken_mirrors_is_named_at_the_end() {
        let server = |name, broken| json!({ "name": name, "broken_files": broken });
        let placement =
            json!({ "export": "/srv", "data_servers": [server("a", 0), server("b", 1)] });
        let shown = lines(&json!({ "placements": [placement], "layouts": 0 }));
        assert_eq!(
            shown[3..],
            [
                "layouts that clients hold: 0",
                "/srv: 1 file without a mirror on b; `comity placement resilver` makes one",
            ]
        );
    }
}
