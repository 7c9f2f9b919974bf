//! The move of one file to other data servers, as a running metadata server does it.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use comity_server::control::Request;
use indicatif::ProgressStyle;
use serde_json::Value;

use crate::clients::text;
use crate::common_arguments::StateFolderArguments;
use crate::control_client;
use crate::placement_pages::{handle, placements};

/// Time for which a file that clients use is tried before the next file.
const FILE_PATIENCE: Duration = Duration::from_secs(10);

/// Pause before the server is asked again about a file.
const PAUSE: Duration = Duration::from_millis(100);

/// The outcome for a file.
pub(crate) enum FileMove {
    /// The answer of the server: the file was moved, or needs no move any more.
    Done(Value),
    /// The reason why the file was not moved.
    Left(String),
}

/// Has the server move a file, whose check was `file`. `copied` is told the bytes copied so far.
///
/// # Errors
/// If no server can be asked any more.
pub(crate) fn move_file(
    state: &StateFolderArguments,
    (export, file): (&Path, &Value),
    copied: impl Fn(u64),
) -> Result<FileMove> {
    let until = Instant::now() + FILE_PATIENCE;
    loop {
        let (export, file) = (export.to_owned(), handle(&file["handle"]));
        let request = Request::PlacementMove { export, file };
        let answer = match control_client::ask(state.clone(), &request) {
            Ok(answer) => answer,
            Err(why) => {
                // The answer to this tells whether the server itself is gone.
                placements(state)?;
                return Ok(FileMove::Left(format!("{why:#}")));
            }
        };
        match text(&answer["state"]) {
            "moving" => copied(answer["copied_bytes"].as_u64().unwrap_or(0)),
            "waiting" if Instant::now() < until => thread::sleep(PAUSE),
            "waiting" => return Ok(FileMove::Left(text(&answer["text"]).to_owned())),
            _ => return Ok(FileMove::Done(answer)),
        }
    }
}

/// The progress bar of moves.
pub(crate) fn move_style() -> ProgressStyle {
    let style =
        ProgressStyle::with_template("{bar:30} {pos}/{len} files  {elapsed_precise}  {msg}");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}
