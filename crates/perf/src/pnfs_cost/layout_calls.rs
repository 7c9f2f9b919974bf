//! LAYOUTGET and LAYOUTRETURN of files whose data servers the client knows, beside OPEN and CLOSE
//! of the minimal server.

use std::time::Duration;

use anyhow::{Context, Result};
use comity_bench::fixture_tree::FixtureTree;
use comity_bench::load::{Load, Stop};
use comity_bench::prober::Pages;
use comity_bench::{InSession, Operation, process};
use comity_proto::nfs4::Layoutiomode4;

use super::PnfsBench;
use super::placed_site::{PlacedSite, StorePlace};
use super::transfer::SiteClient;
use crate::cost_table::Sample;
use crate::judged_figure::JudgedFigure;
use crate::server_process::{LOAD_PROCESSOR, Prepared, ServerProcess, start_raw};
use crate::state_cost::report::median;

/// Calls are made as in the table of operations: connections, and calls outstanding on each.
const CONNECTIONS: usize = 4;
const DEPTH: usize = 8;
/// The number of files, one for each outstanding call.
const FILES: usize = CONNECTIONS * DEPTH;
/// The time of one sample.
const SAMPLE: Duration = Duration::from_millis(400);
/// Largest cost of a call, as a multiple of that of the minimal server's.
const TIMES_RAW_MOST: f64 = 2.5;
/// The number of data servers.
const STORES: usize = 2;

/// The pairs of calls that are measured.
const PAIRS: [(&str, InSession, Option<f64>); 3] = [
    ("OPEN, CLOSE on the placed export", InSession::OpenClose, None),
    (
        "LAYOUTGET, LAYOUTRETURN for reading",
        InSession::Layout(Layoutiomode4::Read),
        Some(TIMES_RAW_MOST),
    ),
    (
        "LAYOUTGET, LAYOUTRETURN for writing",
        InSession::Layout(Layoutiomode4::Rw),
        Some(TIMES_RAW_MOST),
    ),
];

/// Measures the processor time of the metadata server for a call: the middle of both of a pair.
pub(super) fn measure(bench: &PnfsBench) -> Result<Vec<JudgedFigure>> {
    let raw = start_raw(&bench.test_bed.layout)?;
    let places = StorePlace::on_loopback(STORES)?;
    let site = PlacedSite::start(bench, &bench.test_bed.work, &places)?;
    let mut client = SiteClient::connect(&site)?;
    for number in 0..FILES {
        let opened = client.open(&FixtureTree::file(number))?;
        client.close(&opened)?;
    }
    process::pin(None, &[LOAD_PROCESSOR])?;
    let mut figures = Vec::new();
    for (name, pair, most) in PAIRS {
        let times = in_turn(bench, [&raw, &site.mds], pair).context(name)?;
        let ratios: Vec<f64> = times.iter().map(|[raw, comity]| comity / raw).collect();
        let of = |at: usize| median(times.iter().map(|times| times[at]).collect());
        figures.push(JudgedFigure::shown(format!("{name}, us of the server's time"), of(1)));
        let (name, ratio) =
            (format!("the same, times raw ({:.2} us)", of(0)), median(ratios.clone()));
        let judged = match most {
            None => JudgedFigure::shown(name, ratio),
            Some(most) => JudgedFigure::bounded(name, ratio, most),
        };
        figures.push(judged.of_rounds(&ratios));
    }
    Ok(figures)
}

/// The times of a call of both servers in each round, in microseconds.
fn in_turn(
    bench: &PnfsBench,
    servers: [&ServerProcess; 2],
    pair: InSession,
) -> Result<Vec<[f64; 2]>> {
    let operation = Operation::InSession(pair);
    let prepare =
        |server: &ServerProcess| server.prepare(operation, &Pages::default(), (CONNECTIONS, DEPTH));
    let mut prepared = [prepare(servers[0])?, prepare(servers[1])?];
    let mut rounds = Vec::new();
    for _ in 0..bench.rounds() {
        let mut times = [0.0; 2];
        for ((time, server), prepared) in times.iter_mut().zip(servers).zip(&mut prepared) {
            let Prepared { script, client, .. } = prepared;
            let load = Load { depth: DEPTH, stop: Stop::After(SAMPLE) };
            *time = Sample::take(server, client, script, load)?.cost();
        }
        rounds.push(times);
    }
    Ok(rounds)
}
