//! What maps and cloaks cost, in one process.
//!
//! `identity count CONFIGURATION ENTRIES TREE DIRECTORY SEEN PART`: a walk through a directory of
//! which so many entries are seen, in a function of its own for callgrind. `identity time TREE
//! ROUNDS`: all configurations in turn, a line of JSON for each sample.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use comity_backend::{Passthrough, PassthroughOptions};
use comity_bench::identity::{Case, Part, Sample};
use comity_vfs::{Cred, Fs, Gid, Name, Uid};
use rustix::time::{ClockId, clock_gettime};

use crate::configuration::{EXPORT, key, serving};
use crate::walk::Walk;

/// Walks in a sample.
const WALKS: u32 = 4;

pub(crate) fn run(words: &[String]) -> Result<()> {
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["count", tree, case, part] => {
            let (case, part) = (case.parse::<Case>()?, part.parse::<Part>()?);
            let fs = open(Path::new(tree))?;
            let mut walk = prepare(&fs, &case)?;
            once(&mut walk, part)?;
            counted(&mut walk, part)
        }
        ["time", tree, rounds] => time(&open(Path::new(tree))?, rounds.parse()?),
        _ => bail!("identity count TREE CASE PART, or identity time TREE ROUNDS"),
    }
}

fn open(tree: &Path) -> Result<Arc<dyn Fs>> {
    Ok(Arc::new(Passthrough::open(tree, PassthroughOptions::default())?))
}

fn prepare(fs: &Arc<dyn Fs>, case: &Case) -> Result<Walk> {
    let root = Cred::new(Uid::new(0), Gid::new(0));
    let directory = case.directory();
    let name = Name::new(directory.as_bytes()).ok().context("no name")?;
    let found = fs.lookup(&root, &fs.root(), name);
    let dir = found.ok().with_context(|| format!("no {directory}"))?.node.handle;
    let stack = serving(fs, case.configuration, case.entries)?;
    Walk::new(stack, key().seal(EXPORT, &dir).bytes(), case.seen())
}

fn once(walk: &mut Walk, part: Part) -> Result<()> {
    match part {
        Part::Walk => walk.walk(),
        Part::List => walk.list(),
    }
}

/// What callgrind counts.
#[inline(never)]
fn counted(walk: &mut Walk, part: Part) -> Result<()> {
    black_box(once(black_box(walk), part))
}

fn time(fs: &Arc<dyn Fs>, rounds: u32) -> Result<()> {
    let cases = Case::timed();
    let mut walks = cases.iter().map(|case| prepare(fs, case)).collect::<Result<Vec<_>>>()?;
    walks.iter_mut().try_for_each(Walk::walk)?;
    for _ in 0..rounds {
        for (case, walk) in cases.iter().zip(&mut walks) {
            let sample = sample(walk)?;
            println!("{}", serde_json::to_string(&(case.to_string(), sample))?);
        }
    }
    Ok(())
}

fn sample(walk: &mut Walk) -> Result<Sample> {
    let processor = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let (wall, before) = (Instant::now(), processor());
    (0..WALKS).try_for_each(|_| walk.walk())?;
    let processor_nanoseconds = processor() - before;
    Ok(Sample { processor_nanoseconds, wall_nanoseconds: wall.elapsed().as_nanos() as u64 })
}
