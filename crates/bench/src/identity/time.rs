use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::case::{Case, Configuration};

/// What some walks took.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Sample {
    /// Of the thread's processor time, the kernel's part included.
    pub processor_nanoseconds: u64,
    /// By the clock.
    pub wall_nanoseconds: u64,
}

/// Takes time of all configurations in turns, and prints each as a ratio to MNU.
///
/// # Errors
/// The program fails or says something else.
pub(super) fn measure(program: &Path, tree: &Path, rounds: u32) -> Result<()> {
    let mut command = Command::new(program);
    command.args(["identity", "time"]).arg(tree).arg(rounds.to_string());
    let done = command.output().context("run the example `instructions`")?;
    ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut samples = BTreeMap::<Case, Vec<Sample>>::new();
    for line in String::from_utf8(done.stdout)?.lines() {
        let (case, sample): (String, Sample) = serde_json::from_str(line)?;
        samples.entry(case.parse()?).or_default().push(sample);
    }
    print(&samples);
    Ok(())
}

fn print(samples: &BTreeMap<Case, Vec<Sample>>) {
    let base = Case::timed().into_iter().find(|case| case.configuration == Configuration::Mnu);
    let Some(base) = base.and_then(|case| samples.get(&case)) else { return };
    println!("\ntime against MNU, others' files: median of the rounds (least to greatest)");
    for (case, own) in samples {
        let told = [
            spread(own, base, |sample| sample.processor_nanoseconds),
            spread(own, base, |sample| sample.wall_nanoseconds),
        ];
        let Case { configuration, entries, .. } = case;
        println!("{configuration:9}{entries:7}  processor {}   wall {}", told[0], told[1]);
    }
}

/// The ratios of two series, round by round, in percent more.
fn spread(own: &[Sample], base: &[Sample], of: impl Fn(&Sample) -> u64) -> String {
    let ratio = |(own, base): (&Sample, &Sample)| of(own) as f64 / of(base) as f64 * 100.0 - 100.0;
    let mut ratios: Vec<f64> = own.iter().zip(base).map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let (Some(least), Some(greatest)) = (ratios.first(), ratios.last()) else {
        return String::new();
    };
    let median = ratios[ratios.len() / 2];
    format!("{median:+5.1} % ({least:+.1} to {greatest:+.1})")
}
