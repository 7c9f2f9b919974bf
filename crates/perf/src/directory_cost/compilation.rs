//! A compiler that finds its headers in many include directories of a server that is 20 ms away.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::delayed_line::DelayedLine;
use super::site::DelegationBench;
use crate::judged_figure::JudgedFigure;

/// Include directories.
const DIRECTORIES: usize = 40;
/// Headers of a unit; each is in one of the directories.
const HEADERS: usize = 30;
/// Functions of a header, so that the compiler has as much to do as in a real build.
const FUNCTIONS: usize = 40;
/// Half of the time of a round trip.
const DELAY: Duration = Duration::from_millis(10);
/// Units by which a mount learns what there is.
const FIRST_UNITS: usize = 3;
/// Units that are measured; the median counts.
const UNITS: usize = 7;
/// Units that are measured without delegations: one takes half a minute.
const SLOW_UNITS: usize = 1;
/// Longest time of a unit, as a multiple of its time in a local directory.
const TIME_MOST: f64 = 1.2;
/// Largest part of the calls that is left under delegations.
const LEFT_MOST: f64 = 0.1;
/// Directories are never believed without a delegation, and files for a long time.
const OPTIONS: &str = "acdirmin=0,acdirmax=0,acregmin=600,acregmax=600";

/// Measures the time and the calls of a unit with and without delegations; nothing if no compiler
/// is installed.
pub(super) fn measure(bench: &DelegationBench) -> Result<Vec<JudgedFigure>> {
    if Command::new("cc").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("skipped: compilation: there is no cc");
        return Ok(Vec::new());
    }
    let path = bench.directory("sources-")?;
    make(&path)?;
    let local = timed(&path, UNITS)?;
    let (slow, many) = far(bench, &path, ("never", SLOW_UNITS))?;
    let (fast, few) = far(bench, &path, ("second-ask:sole-writer", UNITS))?;
    let name = |what: &str| format!("compilation, server 20 ms away: {what}");
    let shown = |what: &str, time: Duration| {
        JudgedFigure::shown(name(&format!("ms of a unit, {what}")), time.as_secs_f64() * 1e3)
    };
    let bounded = |what: &str, found, most| JudgedFigure::bounded(name(what), found, most);
    let ratio = fast.as_secs_f64() / local.as_secs_f64();
    Ok(vec![
        shown("local", local),
        shown("without delegations", slow),
        shown("with delegations", fast),
        bounded("that time as a multiple of local", ratio, TIME_MOST),
        JudgedFigure::shown(name("calls of a unit without delegations"), many),
        bounded("part of the calls that is left", few / many, LEFT_MOST),
    ])
}

/// The median time of a unit over the long line, and its calls.
fn far(
    bench: &DelegationBench,
    path: &Path,
    (value, units): (&str, usize),
) -> Result<(Duration, f64)> {
    let site = bench.serve(value)?;
    let line = DelayedLine::start(site.server.address, DELAY)?;
    let mounted = site.mount_at(line.address(), path, OPTIONS)?;
    (0..FIRST_UNITS.min(units)).try_for_each(|_| compile(&mounted.dir))?;
    let (time, counts) = site.count(|| timed(&mounted.dir, units))?;
    Ok((time, counts.calls() as f64 / units as f64))
}

/// The median time of so many units.
fn timed(root: &Path, units: usize) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..units {
        let begun = Instant::now();
        compile(root)?;
        times.push(begun.elapsed());
    }
    times.sort_unstable();
    times.get(units / 2).copied().context("no unit was compiled")
}

fn make(path: &Path) -> Result<()> {
    let mut unit = String::new();
    for number in 0..DIRECTORIES {
        fs::create_dir(path.join(format!("include{number}")))?;
    }
    for header in 0..HEADERS {
        let mut text = String::new();
        for function in 0..FUNCTIONS {
            writeln!(
                text,
                "static inline int f{header}_{function}(int x) {{ return x * {function} + 1; }}"
            )?;
        }
        let dir = path.join(format!("include{}", header * DIRECTORIES / HEADERS));
        fs::write(dir.join(format!("header{header}.h")), text)?;
        writeln!(unit, "#include <header{header}.h>")?;
    }
    fs::write(path.join("unit.c"), unit + "int all(int x) { return f0_1(x) + f29_3(x); }\n")?;
    Ok(())
}

/// Compiles the unit; nothing is written.
fn compile(root: &Path) -> Result<()> {
    let mut compiler = Command::new("cc");
    for number in 0..DIRECTORIES {
        compiler.arg("-I").arg(root.join(format!("include{number}")));
    }
    compiler.args(["-O2", "-c", "-o", "/dev/null"]).arg(root.join("unit.c"));
    let said = compiler.output().context("run cc")?;
    ensure!(said.status.success(), "cc: {}", String::from_utf8_lossy(&said.stderr).trim());
    Ok(())
}
