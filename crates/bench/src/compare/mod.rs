//! `comity bench compare`: two results, figure by figure.

mod rows;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use crate::selfscale::predict;
use crate::stdout::say;
use crate::suite::Store;
pub use rows::{Comparison, Row, compare};

/// Options of the comparison.
#[derive(Debug, Args)]
pub struct Options {
    /// The result to compare with.
    #[arg(value_name = "A")]
    before: PathBuf,
    /// The result that is judged.
    #[arg(value_name = "B")]
    after: PathBuf,
    /// Exit with 1 if a figure of B is worse by more than this part, e.g. `5%`, and the samples
    /// differ significantly
    #[arg(long, value_name = "PERCENT", value_parser = part)]
    fail_over: Option<f64>,
    /// Show only figures whose samples differ significantly.
    #[arg(long)]
    distinct: bool,
    /// Give JSON instead of a table.
    #[arg(long)]
    json: bool,
}

/// Reads `5%` or `5` as 0.05.
fn part(text: &str) -> Result<f64, String> {
    let digits = text.strip_suffix('%').unwrap_or(text).trim();
    let found: Option<f64> = digits.parse().ok();
    let found = found.filter(|percent| (0.0..100.0).contains(percent));
    found.map(|percent| percent / 100.0).ok_or_else(|| format!("`{text}` is no percentage, as 5%"))
}

/// Prints the comparison of two results.
///
/// # Errors
/// A result cannot be read, or the two have nothing in common.
pub fn command(options: &Options) -> Result<ExitCode> {
    let (before, after) = (Store::read(&options.before)?, Store::read(&options.after)?);
    let found = compare(&before, &after)?;
    let fail_over = options.fail_over.unwrap_or(f64::INFINITY);
    let text = match options.json {
        true => table::json(&found)?,
        false => table::text(&found, options.distinct),
    };
    say(&text)?;
    if !options.json {
        say(&predict::both(&options.before, &options.after)?)?;
    }
    let worse: Vec<&Row> = found.rows.iter().filter(|row| row.is_worse_by(fail_over)).collect();
    if worse.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let percent = fail_over * 100.0;
    eprintln!(
        "comity: {} of {} figures are worse by more than {percent} %:",
        worse.len(),
        found.rows.len()
    );
    worse.iter().for_each(|row| eprintln!("  {}", row.name()));
    Ok(ExitCode::FAILURE)
}

#[cfg(test)]
mod tests {
    use super::part;

    #[test]
    fn a_percentage_is_read_with_and_without_its_sign() {
        assert_eq!((part("5%"), part("12.5"), part("0")), (Ok(0.05), Ok(0.125), Ok(0.0)));
        for wrong in ["five", "-1%", "100%", ""] {
            assert!(part(wrong).is_err(), "{wrong}");
        }
    }
}
