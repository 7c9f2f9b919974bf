//! `comity cache verify`.

use std::process::ExitCode;

use anyhow::Result;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};

use crate::cache_arguments::CacheVerify;
use crate::cache_status::{counted, tell};
use crate::mount_client::FoundMount;
use crate::mount_request::MountRequest;

/// Folders of a cache: the first three hexadecimal digits of the names in them.
const FOLDERS: u64 = 0x1000;

/// Compares all pages of a cache with their checksums.
///
/// # Errors
/// If there is no mount, or it does not answer.
pub(crate) fn perform(typed: &CacheVerify) -> Result<ExitCode> {
    let mount = FoundMount::of(&typed.dir, &typed.state)?;
    let (mut place, mut sums) = (None, [0; 3]);
    let bar = ProgressBar::new(FOLDERS).with_style(style());
    loop {
        let step = mount.ask(&MountRequest::Verify { place })?;
        for (sum, name) in sums.iter_mut().zip(["files", "pages", "damaged_pages"]) {
            *sum += step[name].as_u64().unwrap_or(0);
        }
        place = step["next"].as_str().map(str::to_owned);
        let Some(next) = &place else { break };
        bar.set_position(folder(next));
    }
    bar.finish_and_clear();
    let [files, pages, damaged] = sums;
    let read = format!("{}, {}", counted(files, "file"), counted(pages, "page"));
    let words = match damaged {
        0 => format!("{read}: all are whole"),
        _ => format!(
            "{read}: dropped {}, to be read from the server again; the disk may be failing",
            counted(damaged, "damaged page")
        ),
    };
    tell(typed.json.json, &value(sums), &words);
    Ok(if damaged == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn value([files, pages, damaged]: [u64; 3]) -> Value {
    json!({ "files": files, "pages": pages, "damaged_pages": damaged })
}

/// The number of the folder that contains a place in the cache.
fn folder(place: &str) -> u64 {
    let folder = place.split('/').next().unwrap_or_default();
    u64::from_str_radix(folder, 16).unwrap_or(0)
}

fn style() -> ProgressStyle {
    let style =
        ProgressStyle::with_template("{bar:30} {percent:>3} %  {elapsed_precise}, {eta} left");
    style.unwrap_or_else(|_| ProgressStyle::default_bar())
}
