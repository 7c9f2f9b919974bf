//! A compiler's search for headers in many include directories, unit after unit.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::site::{DelegationBench, MountedExport, Site};
use crate::judged_figure::JudgedFigure;

/// Include directories.
const DIRECTORIES: usize = 40;
/// Headers of a unit; each is in one of the directories.
const HEADERS: usize = 30;
/// Units of a build, and those of a quick run.
const UNITS: (usize, usize) = (20, 12);
/// Largest part of the calls that is left under delegations.
const LEFT_MOST: f64 = 0.1;
/// Directories are never believed without a delegation: so no search finds less than one on the
/// server would.
const OPTIONS: &str = "acdirmin=0,acdirmax=0,acregmin=600,acregmax=600";

/// Measures the calls of a build with and without delegations.
pub(super) fn measure(bench: &DelegationBench) -> Result<Vec<JudgedFigure>> {
    let path = bench.directory("includes-")?;
    make(&path)?;
    let units = if bench.is_quick { UNITS.1 } else { UNITS.0 };
    let (without, _) = build(&bench.serve("never")?, &path, units)?;
    let site = bench.serve("second-ask:sole-writer")?;
    let (with, last) = build(&site, &path, units)?;
    let name = |what: &str| format!("search, {units} units: {what}");
    Ok(vec![
        JudgedFigure::shown(name("calls without delegations"), without as f64),
        JudgedFigure::shown(name("calls with delegations"), with as f64),
        JudgedFigure::bounded(
            name("part of the calls that is left"),
            with as f64 / without as f64,
            LEFT_MOST,
        ),
        JudgedFigure::bounded(name("calls of the last unit"), last as f64, 0.0),
    ])
}

fn make(path: &Path) -> Result<()> {
    for number in 0..DIRECTORIES {
        fs::create_dir(path.join(format!("include{number}")))?;
    }
    for number in 0..HEADERS {
        let dir = path.join(format!("include{}", place_of(number)));
        fs::write(dir.join(format!("header{number}.h")), "")?;
    }
    Ok(())
}

/// The directory of a header: they are spread over all of them.
const fn place_of(header: usize) -> usize {
    header * DIRECTORIES / HEADERS
}

/// Returns the calls of a whole build, and those of its last unit.
fn build(site: &Site, path: &Path, units: usize) -> Result<(u64, u64)> {
    let mounted: MountedExport = site.mount(path, OPTIONS)?;
    let compile = || (1..units).try_for_each(|_| unit(&mounted.dir));
    let ((), most) = site.count(compile)?;
    let ((), last) = site.count(|| unit(&mounted.dir))?;
    Ok((most.calls() + last.calls(), last.calls()))
}

/// Searches for all headers of a unit.
fn unit(root: &Path) -> Result<()> {
    let directories: Vec<PathBuf> =
        (0..DIRECTORIES).map(|number| root.join(format!("include{number}"))).collect();
    for header in 0..HEADERS {
        let name = format!("header{header}.h");
        let found = directories.iter().position(|dir| dir.join(&name).exists());
        let found = found.context("a header is missing")?;
        ensure!(found == place_of(header), "{name} was found in include{found}");
    }
    Ok(())
}
