//! The cost of TLS: data over it compared with stunnel in front of the same server and with the
//! cipher alone, handshakes during the calls of others, and idle connections.
//!
//! The server and stunnel run on one processor, the client on another. Speed is that of one core:
//! bytes for each second of processor time that the server, and stunnel before it, have used.
//! Other work on the machine therefore hardly changes it.

mod bed;
mod cipher;
mod handshakes;
mod idle;
mod transfer;

use anyhow::Result;

use self::bed::{Bed, Route};
use self::transfer::DataDirection;
use crate::server_process::ServerOptions;

/// Options of the measurement.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    #[command(flatten)]
    server: ServerOptions,
    /// Fewer data, rounds, handshakes and connections.
    #[arg(long)]
    pub quick: bool,
    /// Exit with 1 if a bound is missed, except for bounds that are known to be missed.
    #[arg(long)]
    pub check: bool,
}

/// Number of rounds: in a whole run, and with `--quick`.
const ROUNDS: (usize, usize) = (7, 3);
/// Least speed of TLS, as a multiple of that of stunnel.
const STUNNEL_LEAST: f64 = 1.5;
/// Least speed of TLS, as a multiple of that of the cipher alone.
const CIPHER_LEAST: f64 = 0.8;

/// Measures and prints, and returns whether all judged figures are within their bounds.
///
/// # Errors
/// A server does not start or answers wrongly.
pub fn run(options: &Options) -> Result<bool> {
    let bed = Bed::start(&options.server)?;
    let cipher = cipher::bytes_a_second()?;
    println!("AES-256-GCM alone, one core: {:.2} GB/s", cipher / 1e9);
    if !bed.has_stunnel() {
        println!("stunnel is not installed (Debian: stunnel4): nothing is compared with it");
    }
    let data = [DataDirection::Read, DataDirection::Write]
        .map(|direction| data(&bed, (direction, options.quick), cipher));
    let others = [handshakes::measure(&bed, options.quick)?, idle::measure(&bed, options.quick)?];
    let [read, write] = data;
    Ok(read? && write? && others == [true; 2])
}

/// Measures one direction by each route in turns. Returns whether TLS is fast enough compared with
/// stunnel. It is known that TLS is slower than its cipher, because the time includes the rest of
/// the server's work.
fn data(bed: &Bed, what: (DataDirection, bool), cipher: f64) -> Result<bool> {
    let mut speeds: Vec<(Route, Vec<f64>)> =
        bed.routes().into_iter().map(|route| (route, Vec::new())).collect();
    for _ in 0..if what.1 { ROUNDS.1 } else { ROUNDS.0 } {
        for (route, speeds) in &mut speeds {
            speeds.push(transfer::bytes_a_second(bed, *route, what)?);
        }
        speeds.rotate_left(1);
    }
    let of = |wanted: Route| {
        let found = speeds.iter().find(|(route, _)| *route == wanted);
        found.map(|(_, speeds)| median(speeds))
    };
    println!("\n{}, of a second of one core", what.0.name());
    for (name, route) in Route::NAMES {
        if let Some(speed) = of(route) {
            println!("  {name:18} {:6.2} GB/s", speed / 1e9);
        }
    }
    let tls = of(Route::Tls).unwrap_or_default();
    at_least("of the cipher alone, times", tls / cipher, CIPHER_LEAST, true);
    let beside = of(Route::Stunnel).map(|stunnel| tls / stunnel);
    Ok(beside.is_none_or(|times| at_least("of stunnel, times", times, STUNNEL_LEAST, false)))
}

/// Prints a figure and its lower bound. Returns whether the figure is within the bound, or is known
/// to miss it.
fn at_least(what: &str, figure: f64, least: f64, is_known: bool) -> bool {
    let verdict = match (figure >= least, is_known) {
        (true, _) => "met",
        (false, true) => "missed, as is known",
        (false, false) => "MISSED",
    };
    println!("  {what}: {figure:.2}, at least {least}: {verdict}");
    figure >= least || is_known
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_below_its_bound_is_a_miss_unless_that_is_known() {
        assert!(at_least("figure", 1.5, 1.5, false));
        assert!(!at_least("figure", 1.4, 1.5, false));
        assert!(!at_least("figure", f64::NAN, 1.5, false));
        assert!(at_least("figure", 1.4, 1.5, true));
    }

    #[test]
    fn the_median_of_figures_is_the_middle_one() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[]), 0.0);
    }
}
