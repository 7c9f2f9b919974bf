//! What the suite itself adds to a figure.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on ends")]

mod common;

use std::io::Result as IoResult;
use std::path::Path;
use std::sync::Arc;

use comity_bench::reach::DirectoryTarget;
use comity_bench::suite::{
    Access, Content, Driver, Entry, FileId, FileKind, Files, Interrupt, LockKind, Metadata, Range,
    Wait,
};
use common::{chosen, plan, run};

/// A target on which every operation does nothing.
struct Nothing;

const EMPTY: Metadata = Metadata { kind: FileKind::File, size: 0, user: 0 };

impl Files for Nothing {
    fn make_directory(&mut self, _: &str) -> IoResult<()> {
        Ok(())
    }
    fn remove_directory(&mut self, _: &str) -> IoResult<()> {
        Ok(())
    }
    fn create(&mut self, _: &str) -> IoResult<FileId> {
        Ok(FileId(0))
    }
    fn open(&mut self, _: &str, _: Access) -> IoResult<FileId> {
        Ok(FileId(0))
    }
    fn close(&mut self, _: FileId) -> IoResult<()> {
        Ok(())
    }
    fn read(&mut self, _: FileId, _: u64, buffer: &mut [u8]) -> IoResult<usize> {
        Ok(buffer.len())
    }
    fn write(&mut self, _: FileId, _: u64, data: &[u8]) -> IoResult<usize> {
        Ok(data.len())
    }
    fn sync(&mut self, _: FileId) -> IoResult<()> {
        Ok(())
    }
    fn attributes(&mut self, _: FileId) -> IoResult<Metadata> {
        Ok(EMPTY)
    }
    fn lookup(&mut self, _: &str) -> IoResult<Metadata> {
        Ok(EMPTY)
    }
    fn list(&mut self, _: &str, _: bool) -> IoResult<Vec<Entry>> {
        Ok(Vec::new())
    }
    fn make_link(&mut self, _: &str, _: &str) -> IoResult<()> {
        Ok(())
    }
    fn read_link(&mut self, _: &str) -> IoResult<String> {
        Ok(String::new())
    }
    fn remove(&mut self, _: &str) -> IoResult<()> {
        Ok(())
    }
    fn set_owner(&mut self, _: &str, _: u32, _: u32) -> IoResult<()> {
        Ok(())
    }
    fn lock(&mut self, _: FileId, _: LockKind, _: Range, _: Wait) -> IoResult<()> {
        Ok(())
    }
}

/// Nanoseconds of an operation that does nothing, as the figures have it; the least of some tries.
fn of_nothing() -> f64 {
    const OPERATIONS: u32 = 50_000;
    let content = Arc::new(Content::new(1));
    let mut driver = Driver::new(Box::new(Nothing), content, Interrupt::default());
    let mut tries = Vec::new();
    for _ in 0..5 {
        driver.take_tally();
        for _ in 0..OPERATIONS {
            driver.lookup("a/path/of/some/length").unwrap();
        }
        tries.push(driver.take_tally().spent.as_nanos() as f64 / f64::from(OPERATIONS));
    }
    tries.into_iter().fold(f64::INFINITY, f64::min)
}

/// Nanoseconds of an operation of NFSSTONE on a tmpfs; the least of some rounds.
fn of_nfsstone(memory: &Path) -> f64 {
    let (place, output) = (tempfile::tempdir_in(memory).unwrap(), tempfile::tempdir().unwrap());
    let mut plan = plan(vec![chosen("nfsstone", &[("operations", "20000")])], output.path());
    plan.rounds = 5;
    let target = DirectoryTarget::open(place.path()).unwrap();
    let (ran, outcome) = run(&plan, Box::new(target));
    ran.unwrap();
    let rounds = outcome.workloads[0].rounds.iter();
    rounds.map(|round| 1e9 / round.samples[0].value).fold(f64::INFINITY, f64::min)
}

#[test]
fn the_driver_is_a_twentieth_of_a_figure_on_tmpfs_at_most() {
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        eprintln!("skipped: there is no /dev/shm");
        return;
    }
    let (nothing, nfsstone) = (of_nothing(), of_nfsstone(memory));
    let share = nothing / nfsstone;
    // A program that is not optimized is four times as slow between the looks at the clock.
    let limit = if cfg!(debug_assertions) { 0.20 } else { 0.05 };
    println!("{nothing:.0} ns of {nfsstone:.0} ns: {:.1} %", share * 100.0);
    assert!(share < limit, "{nothing:.0} ns of {nfsstone:.0} ns are the driver's");
}
