//! Compares advice to move an export with what the move changes. Two servers of the same files have
//! a processor each; in each case, programs use resources of one or both of them, or nobody does.
//!
//! A client calls the first server for a while, so that its calls are a part of the load. The
//! first server then predicts what a move would change for the client; the client's calls are
//! timed, the export moves, advised or not, and the calls are timed at the second server. The
//! client runs on the processor of the server that it calls, so that it uses nothing of the other.

mod cases;
mod paced_client;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use comity_bench::process::{self, StartedServer};
use serde_json::Value;

use self::cases::{AdviceCase, CASES, Consumers};
use self::paced_client::PacedClient;
use crate::row_options::RowOptions;
use crate::server_process::{LOAD_PROCESSOR, SERVER_PROCESSOR, ServerPair, TestBed};

/// The processors of the two servers.
const PROCESSORS: [usize; 2] = [SERVER_PROCESSOR, LOAD_PROCESSOR];

/// Time in which the averages over a minute follow.
const SETTLE: Duration = Duration::from_secs(75);
const SETTLE_QUICK: Duration = Duration::from_secs(20);

/// A move that is advised must make calls shorter by this part.
const GAIN_LEAST: f64 = 0.05;

/// A move that is not advised must not make calls shorter by more than this part.
const MISSED_GAIN_MOST: f64 = 0.15;

/// The advice, and what the move has changed.
struct AdviceOutcome {
    is_advised: bool,
    /// The part by which the client's calls were to get shorter, and by which they got shorter.
    predicted: f64,
    measured: f64,
}

/// Measures and prints; returns whether the advice was right in each case.
///
/// # Errors
/// A server or a consumer does not start, a call is not answered as it must be, or the export does
/// not move.
pub fn run(options: &RowOptions) -> Result<bool> {
    println!(
        "{:26} {:>7} {:>11} {:>10}  a server's load before",
        "case", "advice", "predicted", "measured"
    );
    let mut are_right = true;
    for case in CASES.iter().filter(|case| options.is_wanted(case.name)) {
        let (compared, loads) = compare(options, case).with_context(|| case.name.to_owned())?;
        are_right &= compared.print(case, &loads);
    }
    Ok(are_right)
}

fn compare(options: &RowOptions, case: &AdviceCase) -> Result<(AdviceOutcome, String)> {
    let test_bed = TestBed::make(&options.subject)?;
    let nowhere = "127.0.0.1:9".parse()?;
    let early = |place| start(&test_bed, case, (place, nowhere), false);
    let _before = [early(0)?, early(1)?];
    let pair = ServerPair::start(&test_bed, PROCESSORS)?;
    let late = |place: usize| start(&test_bed, case, (place, pair.addresses()[place]), true);
    let _after = [late(0)?, late(1)?];
    process::pin(None, &[PROCESSORS[0]])?;
    let mut client = PacedClient::new(pair.first())?;
    let begun = Instant::now();
    while begun.elapsed() < if options.quick { SETTLE_QUICK } else { SETTLE } {
        client.time()?;
    }
    let advice = pair.advice()?;
    let before = client.time()?;
    pair.migrate(0)?;
    process::pin(None, &[PROCESSORS[1]])?;
    client.follow(pair.addresses()[1])?;
    let after = client.time()?;
    process::pin(None, &PROCESSORS)?;
    let changes = before.iter().zip(&after).map(|(before, after)| (after / before).ln());
    let measured = 1.0 - (changes.sum::<f64>() / before.len() as f64).exp();
    let predicted = advice["moves"][0]["gain_moved"].as_f64().context("no prediction")?;
    let is_advised = advice["moves"][0]["pays"] == true;
    Ok((AdviceOutcome { is_advised, predicted, measured }, loads(&advice)))
}

/// Starts the programs at a server that call it, or the others.
fn start(
    test_bed: &TestBed,
    case: &AdviceCase,
    (place, server): (usize, SocketAddr),
    call_the_server: bool,
) -> Result<Vec<StartedServer>> {
    let meant = case.consumers[place].filter(|it| it.call_the_server() == call_the_server);
    let Some(Consumers { consumer, level, count }) = meant else { return Ok(Vec::new()) };
    let start = |_| consumer.start(test_bed, (server, PROCESSORS[place]), level);
    (0..count).map(start).collect()
}

fn loads(advice: &Value) -> String {
    let shown = |load: &Value| {
        let percent = load["ratio"].as_f64().unwrap_or_default() * 100.0;
        let slowdown = load["slowdown"].as_f64().unwrap_or_default();
        let resource = load["resource"].as_str().unwrap_or_default();
        format!("{resource} {percent:.0} %, {slowdown:.2}")
    };
    format!("{}; {}", shown(&advice["here"]), shown(&advice["peers"][0]["load"]))
}

impl AdviceOutcome {
    /// Prints the row, and returns whether the advice was right.
    fn print(&self, case: &AdviceCase, loads: &str) -> bool {
        let is_right = self.is_advised == case.pays
            && if self.is_advised {
                self.measured > GAIN_LEAST
            } else {
                self.measured < MISSED_GAIN_MOST
            };
        let (name, advice) = (case.name, if self.is_advised { "move" } else { "stay" });
        let [predicted, measured] = [self.predicted, self.measured].map(|part| part * 100.0);
        let judgement = if is_right { "right" } else { "WRONG" };
        println!(
            "{name:26} {advice:>7} {predicted:>9.0} % {measured:>8.0} %  {loads}  {judgement}"
        );
        is_right
    }
}
