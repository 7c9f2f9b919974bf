//! `comity cache status`.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::cache_arguments::CacheStatus;
use crate::mount_client::FoundMount;
use crate::mount_request::MountRequest;
use crate::stdout::{say, show};

/// Time between two requests of `--watch`.
const INTERVAL: Duration = Duration::from_secs(1);

/// Shows the state of the caches, once or repeatedly.
///
/// # Errors
/// If a mount does not answer; the message says what to do.
pub(crate) fn print(typed: &CacheStatus) -> Result<ExitCode> {
    let mut drawn = 0;
    loop {
        let found = states(typed)?;
        let text = match typed.json.json {
            true => format!("{}\n", Value::from(found)),
            false => text(&found),
        };
        let redraws = !typed.json.json && std::io::stdout().is_terminal();
        if redraws && drawn > 0 {
            // Moves up to the first line printed last time, and clears everything below it.
            show(format!("\x1b[{drawn}A\x1b[J").as_bytes());
        }
        show(text.as_bytes());
        drawn = text.lines().count();
        if !typed.watch {
            return Ok(ExitCode::SUCCESS);
        }
        thread::sleep(INTERVAL);
    }
}

fn states(typed: &CacheStatus) -> Result<Vec<Value>> {
    let request = MountRequest::Status;
    match &typed.dir {
        Some(dir) => Ok(vec![FoundMount::of(dir, &typed.state)?.ask(&request)?]),
        None => {
            let mounts = FoundMount::all(&typed.state)?;
            let answers =
                mounts.iter().filter_map(|mount| mount.ask_if_there(&request).transpose());
            Ok(answers.filter_map(heard).collect())
        }
    }
}

/// Prints the error of a mount that does not answer, so that the other mounts are still shown.
fn heard(answer: Result<Value>) -> Option<Value> {
    answer.inspect_err(|error| eprintln!("comity: {error:#}")).ok()
}

fn text(found: &[Value]) -> String {
    match found.is_empty() {
        true => "no mounts\n".to_owned(),
        false => found.iter().map(lines).collect(),
    }
}

fn lines(state: &Value) -> String {
    let word = |name: &str| state[name].as_str().unwrap_or_default().to_owned();
    let mut text =
        format!("{} ({}, process {})\n", word("mount"), word("source"), state["process"]);
    let cache = &state["cache"];
    if cache.is_null() {
        return text + "  no disk cache: mount it with -o dc_enable\n";
    }
    let number = |name: &str| cache[name].as_u64().unwrap_or(0);
    let (hit, miss) = (number("hit_bytes"), number("miss_bytes"));
    let percent = hit.saturating_mul(100).checked_div(hit.saturating_add(miss)).unwrap_or(0);
    let disk = match cache["is_disk_usable"] == true {
        true => bytes(number("disk_bytes")),
        false => "failed, and is not used any longer; see the log".to_owned(),
    };
    let facts = [
        ("on the cache disk", disk),
        ("read from it", format!("{}, {percent} % of what was read", bytes(hit))),
        ("calls spared", number("spared_calls").to_string()),
        ("files in part", number("partial_files").to_string()),
        ("still to send", dirty(&number)),
        ("conflicts", number("conflicts").to_string()),
        ("damaged pages", number("damaged_pages").to_string()),
    ];
    for (name, value) in facts {
        text += &format!("  {name:18} {value}\n");
    }
    text
}

fn dirty(number: &impl Fn(&str) -> u64) -> String {
    match number("dirty_bytes") {
        0 => "nothing".to_owned(),
        size => format!(
            "{} of {}, the oldest for {} s",
            bytes(size),
            counted(number("dirty_files"), "file"),
            number("dirty_age_milliseconds") / 1_000
        ),
    }
}

/// Formats a number with the noun that it counts.
pub(crate) fn counted(number: u64, kind: &str) -> String {
    if number == 1 { format!("1 {kind}") } else { format!("{number} {kind}s") }
}

/// A size in the largest fitting unit.
pub(crate) fn bytes(size: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.into_iter().find(|(shift, _)| size >> shift > 0) {
        None => format!("{size} bytes"),
        Some((shift, unit)) => {
            let tenths = (u128::from(size) * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
    }
}

/// Prints the result, in words or as JSON.
pub(crate) fn tell(json: bool, value: &Value, words: &str) {
    match json {
        true => say(value),
        false => say(words),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sizes_are_read_by_people() {
        let shown = [0, 1_023, 1_024, 1_600, 5 << 20, 3 << 40, u64::MAX].map(bytes);
        let wanted =
            ["0 bytes", "1023 bytes", "1.0 KiB", "1.5 KiB", "5.0 MiB", "3.0 TiB", "16777215.9 TiB"];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn a_mount_is_shown_with_its_dirty_data_and_without_a_cache() {
        let mut state = json!({
            "mount": "/mnt", "source": "host:/srv", "process": 7,
            "cache": {
                "hit_bytes": 300, "miss_bytes": 100, "is_disk_usable": true, "dirty_bytes": 2_048,
                "dirty_files": 2, "dirty_age_milliseconds": 3_500,
            },
        });
        let shown = text(&[state.clone()]);
        assert!(shown.starts_with("/mnt (host:/srv, process 7)\n"), "{shown}");
        assert!(shown.contains("300 bytes, 75 % of what was read"), "{shown}");
        assert!(shown.contains("2.0 KiB of 2 files, the oldest for 3 s"), "{shown}");
        state["cache"] = Value::Null;
        assert!(text(&[state]).contains("-o dc_enable"));
        assert_eq!(text(&[]), "no mounts\n");
    }
}
