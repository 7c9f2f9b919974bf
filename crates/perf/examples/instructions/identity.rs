//! The cost of maps and cloaks, in one process.
//!
//! `identity count TREE CASE PART`: a walk through a directory, in a function of its own for
//! callgrind. `identity time TREE`: for each line with a case, a line of JSON with a sample.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::hint::black_box;
use std::io::stdin;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use comity_backend::{Passthrough, PassthroughOptions};
use comity_perf::idmap_cost::{Case, Part, Sample};
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
        ["time", tree] => time(&open(Path::new(tree))?),
        _ => bail!("identity count TREE CASE PART, or identity time TREE"),
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

/// The work that callgrind counts.
#[inline(never)]
fn counted(walk: &mut Walk, part: Part) -> Result<()> {
    black_box(once(black_box(walk), part))
}

/// Cases are prepared when they are first asked for.
fn time(fs: &Arc<dyn Fs>) -> Result<()> {
    let mut walks = BTreeMap::new();
    for line in stdin().lines() {
        let case: Case = line?.parse()?;
        let walk = match walks.entry(case) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(prepare(fs, &case)?),
        };
        println!("{}", serde_json::to_string(&sample(walk)?)?);
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
