//! Listings, attributes and missing names of one directory, again and again.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Result, ensure};

use super::site::{DelegationBench, OperationCounts};
use crate::judged_figure::JudgedFigure;

/// Files of the directory.
const FILES: usize = 50;
/// Names that are looked up and missing.
const MISSING: usize = 20;
/// Directories that are used: the root of the mount, and the one with the files.
const DIRECTORIES: f64 = 2.0;
/// A second look of a person comes later than this; a server counts earlier ones as the same.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// Directories are never believed without a delegation, and files for a long time: no delegation of
/// a directory speaks of its files' attributes.
const OPTIONS: &str = "acdirmin=0,acdirmax=0,acregmin=600,acregmax=600";

/// Measures the policy that grants everything, and the default one.
pub(super) fn measure(bench: &DelegationBench) -> Result<Vec<JudgedFigure>> {
    let mut rows = Vec::new();
    for (policy, pause) in [("always", Duration::ZERO), ("second-ask", BETWEEN_LOOKS)] {
        let site = bench.serve(&format!("{policy}:sole-writer"))?;
        let path = bench.directory("looks-")?;
        let dir = path.join("files");
        fs::create_dir(&dir)?;
        for number in 0..FILES {
            fs::write(dir.join(format!("file{number}")), "")?;
        }
        let mounted = site.mount(&path, OPTIONS)?;
        let dir = mounted.dir.join("files");
        let ((), first) = site.count(|| list(&dir))?;
        let mut passes = Vec::new();
        for _ in 0..3 {
            sleep(pause);
            passes.push(site.count(|| look(&dir))?.1);
        }
        let ((), repeated) = site.count(|| (0..3).try_for_each(|_| round(&dir)))?;
        rows.extend(judged(policy, &first, &passes, &repeated));
    }
    Ok(rows)
}

fn judged(
    policy: &str,
    first: &OperationCounts,
    passes: &[OperationCounts],
    repeated: &OperationCounts,
) -> Vec<JudgedFigure> {
    let getattrs: u64 = passes.iter().chain([first]).map(OperationCounts::getattrs_alone).sum();
    let later = passes.iter().skip(1);
    let lookups: u64 = later.clone().map(|pass| pass.of("LOOKUP")).sum();
    let calls: u64 = later.map(OperationCounts::calls).sum();
    let name = |what: &str| format!("looks, {policy}: {what}");
    vec![
        JudgedFigure::bounded(name("GETATTR a directory"), getattrs as f64 / DIRECTORIES, 1.0),
        JudgedFigure::bounded(name("LOOKUP after the first pass"), lookups as f64, 0.0),
        JudgedFigure::shown(name("all calls after the first pass"), calls as f64),
        JudgedFigure::bounded(name("calls of three repeated rounds"), repeated.calls() as f64, 0.0),
    ]
}

/// All that one round does: a listing, and three passes.
fn round(dir: &Path) -> Result<()> {
    list(dir)?;
    (0..3).try_for_each(|_| look(dir))
}

/// Lists the directory.
fn list(dir: &Path) -> Result<()> {
    let count = fs::read_dir(dir)?.count();
    ensure!(count == FILES, "{count} files instead of {FILES}");
    Ok(())
}

/// Lists the directory with attributes, and looks up missing names.
fn look(dir: &Path) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        entry?.metadata()?;
    }
    let missing = (0..MISSING).filter(|number| !dir.join(format!("missing{number}")).exists());
    ensure!(missing.count() == MISSING, "a missing name was found");
    Ok(())
}
