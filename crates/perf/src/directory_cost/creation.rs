//! Files that are made in a directory that another client holds.

use std::fs::{self, File};
use std::path::Path;

use anyhow::{Result, ensure};

use super::site::DelegationBench;
use crate::judged_figure::JudgedFigure;

/// Files that are made.
const FILES: usize = 20;
/// Number of listings after which a client has a delegation of the directory.
const LOOKS: usize = 3;
/// Attribute timeouts of zero: a mount without a delegation of a directory asks the server each
/// time, and so requests a delegation.
const OPTIONS: &str = "acdirmin=0,acdirmax=0";

/// Measures holders that are recalled, and those that are notified.
pub(super) fn measure(bench: &DelegationBench) -> Result<Vec<JudgedFigure>> {
    Ok(vec![
        added(bench, ("recalls", "always:sole-writer:recall-only"), 1.0)?,
        added(bench, ("notifications", "always:sole-writer"), 0.0)?,
    ])
}

/// Counts the OPENs by which the files are made; those beyond one a file were told to come again.
fn added(bench: &DelegationBench, (how, value): (&str, &str), most: f64) -> Result<JudgedFigure> {
    let site = bench.serve(value)?;
    let path = bench.directory("creation-")?;
    let [holder, maker] = [site.mount(&path, OPTIONS)?, site.mount(&path, OPTIONS)?];
    let (mut opens, mut granted) = (0, 0);
    for number in 0..FILES {
        hold(&holder.dir, number)?;
        granted += u64::from(site.number("comity_directory_delegations")? > 0);
        let ((), made) = site.count(|| {
            File::create_new(maker.dir.join(format!("file{number}")))?;
            Ok(())
        })?;
        opens += made.of("OPEN");
    }
    hold(&holder.dir, FILES)?;
    ensure!(granted == FILES as u64, "the directory was held {granted} times of {FILES}");
    let changes =
        ["comity_directory_delegations_recalled_total", "comity_directory_notifications_total"];
    let told = changes.map(|name| site.number(name)).into_iter().sum::<Result<u64>>()?;
    ensure!(told >= FILES as u64, "the holder was told of {told} changes of {FILES}");
    let name = format!("creation, one holder, by {how}: round trips added to a creation");
    Ok(JudgedFigure::bounded(name, opens as f64 / FILES as f64 - 1.0, most))
}

/// Lists the directory until it is held; it must show what was made so far.
fn hold(dir: &Path, files: usize) -> Result<()> {
    for _ in 0..LOOKS {
        let seen = fs::read_dir(dir)?.count();
        ensure!(seen == files, "{seen} files instead of {files}");
    }
    Ok(())
}
