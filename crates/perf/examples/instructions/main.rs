//! Makes calls through the whole stack in one process, from the received record to the bytes of the
//! reply: `instructions OPERATION CALLS` for callgrind, `instructions identity ...` for what maps
//! and cloaks cost (see `identity.rs`), and `instructions grants ...` for what rights held by keys
//! cost (see `grants.rs`).

mod calls;
mod configuration;
mod grants;
mod identity;
mod sequenced;
#[path = "../../../bench/tests/served/setting.rs"]
mod setting;
mod single;
mod stack;
mod walk;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    // A thread that has acted for callers keeps their ids; callgrind writes its file under the
    // first thread's.
    let worker = std::thread::spawn(move || run(&words));
    worker.join().map_err(|_| anyhow::anyhow!("panic"))?
}

fn run(words: &[String]) -> Result<()> {
    let (operation, rest) = words.split_first().context("no operation")?;
    match operation.as_str() {
        "grants" => grants::run(rest),
        "identity" => identity::run(rest),
        operation => single::run(operation, rest.first().context("no count")?.parse()?),
    }
}
