use anyhow::{Context as _, Result};

use super::{lock, pieces, seconds_since};
use crate::suite::{Access, Context, LockKind, Range, Unit, Wait};
use crate::system::shell;

/// Another client opens a file on which n locks are held under a delegation.
pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let command = context.parameters().text("recall-command")?.to_owned();
    if command.is_empty() {
        context.note("recalls of delegations were left out: they need --recall-command");
        return Ok(());
    }
    let bytes = context.parameters().bytes("file-size")?;
    for locks in context.parameters().counts("recall-locks")? {
        let path = context.path(&format!("recall-{locks}"));
        let mut driver = context.driver()?;
        let made = driver.create(&path)?;
        driver.write(&made, bytes.saturating_sub(1), 1)?;
        driver.close(made)?;
        let file = driver.open(&path, Access::Write)?;
        let ranges: Vec<Range> = if locks == 0 { Vec::new() } else { pieces(bytes, locks)? };
        for range in ranges {
            lock(&mut driver, &file, range)?;
        }
        let start = std::time::Instant::now();
        shell(&command, &[("COMITY_BENCH_FILE", &path)]).context("--recall-command")?;
        let seconds = seconds_since(start, std::time::Instant::now());
        context.sample("recall", &[("locks", locks.into())], seconds, Unit::Seconds);
        driver.lock(&file, LockKind::Unlock, Range { offset: 0, length: 0 }, Wait::No)?;
        driver.close(file)?;
    }
    Ok(())
}
