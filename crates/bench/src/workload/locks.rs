use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::suite::{
    Access, Context, Driver, Figure, LockKind, Needs, OpenFile, Parameters, Range, Unit, Wait,
    Workload,
};

mod hand_over;
mod history;
mod parameters;
mod recall;

/// The lock measurements of CITI (2006).
pub(super) struct Locks;

/// The whole file.
const WHOLE: Range = Range { offset: 0, length: 0 };

impl Workload for Locks {
    fn name(&self) -> &'static str {
        "locks"
    }

    fn about(&self) -> &'static str {
        "whole-file locks, split and join of ranges, hand-over to waiters, open cost, recall of a \
         delegation"
    }

    fn origin(&self) -> &'static str {
        "CITI, ASC project report 2006. Locks belong to open files (F_OFD_SETLK), so that one \
         program can hold them against itself; in NFS 4.1 each has a lock-owner of its own, and a \
         waiter asks again every millisecond. Hand-over: N wait for an exclusive lock, it is \
         released, and each passes it on at once. Recall of a delegation needs somebody else who \
         opens the file: --recall-command."
    }

    fn parameters(&self) -> &'static [crate::suite::Parameter] {
        parameters::ALL
    }

    fn history(&self) -> &'static [Figure] {
        history::ALL
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        let bytes = parameters.bytes("file-size")?;
        let all_ranges = parameters.counts("ranges")?;
        all_ranges.iter().try_for_each(|ranges| pieces(bytes, *ranges).map(drop))?;
        let some = |name| parameters.counts(name).map(|counts| !counts.contains(&0));
        ensure!(some("files")? && some("waiters")?, "--files and --waiters: at least 1");
        Ok(())
    }

    fn needs(&self) -> Needs {
        Needs::Locks
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let parts: [fn(&mut Context<'_>) -> Result<()>; 5] =
            [whole_files, split, join, hand_over::run, recall::run];
        for (number, part) in parts.iter().enumerate() {
            part(context)?;
            context.advance((number + 1) as f64 / parts.len() as f64);
        }
        Ok(())
    }
}

/// Opens N files, locks each, and measures both.
fn whole_files(context: &mut Context<'_>) -> Result<()> {
    for count in context.parameters().counts("files")? {
        let mut driver = context.driver()?;
        let paths: Vec<String> =
            (0..count).map(|number| context.path(&format!("whole-{count}-{number}"))).collect();
        for path in &paths {
            let file = driver.create(path)?;
            driver.close(file)?;
        }
        driver.take_tally();
        let opened: Result<Vec<OpenFile>> =
            paths.iter().map(|path| driver.open(path, Access::Write)).collect();
        let opening = driver.take_tally().spent;
        let files =
            opened.context("open many files: raise the limit (ulimit -n) or give --files")?;
        for file in &files {
            lock(&mut driver, file, WHOLE)?;
        }
        let locking = driver.take_tally().spent;
        files.into_iter().try_for_each(|file| driver.close(file))?;
        let at = [("files", count.into())];
        context.sample("open", &at, opening.as_secs_f64(), Unit::Seconds);
        let each = locking.as_secs_f64() / count.max(1) as f64;
        context.sample("lock", &at, each, Unit::Seconds);
    }
    Ok(())
}

/// Locks a file as a whole, then unlocks ranges that do not touch.
fn split(context: &mut Context<'_>) -> Result<()> {
    let (mut driver, file, bytes) = large(context, "split")?;
    for ranges in context.parameters().counts("ranges")? {
        driver.take_tally();
        lock(&mut driver, &file, WHOLE)?;
        let whole = driver.take_tally().spent;
        for range in pieces(bytes, ranges)? {
            driver.lock(&file, LockKind::Unlock, range, Wait::No)?;
        }
        let unlocks = driver.take_tally().spent;
        driver.lock(&file, LockKind::Unlock, WHOLE, Wait::No)?;
        let at = [("ranges", ranges.into())];
        context.sample("split lock", &at, whole.as_secs_f64(), Unit::Seconds);
        context.sample("split unlocks", &at, unlocks.as_secs_f64(), Unit::Seconds);
    }
    driver.close(file)
}

/// Locks ranges that do not touch, then the file as a whole.
fn join(context: &mut Context<'_>) -> Result<()> {
    let (mut driver, file, bytes) = large(context, "join")?;
    for ranges in context.parameters().counts("ranges")? {
        driver.take_tally();
        for range in pieces(bytes, ranges)? {
            lock(&mut driver, &file, range)?;
        }
        let parts = driver.take_tally().spent;
        lock(&mut driver, &file, WHOLE)?;
        let whole = driver.take_tally().spent;
        driver.lock(&file, LockKind::Unlock, WHOLE, Wait::No)?;
        let at = [("ranges", ranges.into())];
        context.sample("join ranges", &at, parts.as_secs_f64(), Unit::Seconds);
        context.sample("join whole", &at, whole.as_secs_f64(), Unit::Seconds);
    }
    driver.close(file)
}

fn large(context: &Context<'_>, name: &str) -> Result<(Driver, OpenFile, u64)> {
    let bytes = context.parameters().bytes("file-size")?;
    let mut driver = context.driver()?;
    let file = driver.create(&context.path(name))?;
    // Locks need no data; the last byte gives the file its size.
    driver.write(&file, bytes.saturating_sub(1), 1)?;
    Ok((driver, file, bytes))
}

/// Divides a file of `bytes` into `ranges` equal parts and returns the first half of each.
fn pieces(bytes: u64, ranges: u64) -> Result<Vec<Range>> {
    ensure!((1..=bytes / 2).contains(&ranges), "--ranges: from 1 to half of --file-size");
    let stretch = bytes / ranges;
    let length = (stretch / 2).max(1);
    Ok((0..ranges).map(|number| Range { offset: number * stretch, length }).collect())
}

fn lock(driver: &mut Driver, file: &OpenFile, range: Range) -> Result<()> {
    let taken = driver.lock(file, LockKind::Exclusive, range, Wait::No);
    taken.context("no lock can be taken: mount with locks, or name a file system that has them")
}

/// Seconds between two moments.
fn seconds_since(start: Instant, end: Instant) -> f64 {
    end.checked_duration_since(start).unwrap_or(Duration::ZERO).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_do_not_touch_and_are_in_the_file() {
        for ranges in [1, 3, 29_971] {
            let pieces = pieces(30_000_000, ranges).unwrap();
            assert_eq!(pieces.len() as u64, ranges);
            for pair in pieces.windows(2) {
                assert!(pair[0].offset + pair[0].length < pair[1].offset, "{pair:?}");
            }
            let last = pieces[pieces.len() - 1];
            assert!(last.offset + last.length <= 30_000_000);
        }
        assert!(pieces(10, 0).is_err() && pieces(10, 6).is_err());
    }
}
