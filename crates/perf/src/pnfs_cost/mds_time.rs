//! The processor time of the metadata server for each GiB that clients write and read at data
//! servers, beside that of a server that serves the same bytes itself.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use comity_bench::fixture_tree;

use super::PnfsBench;
use super::placed_site::{PlacedSite, StorePlace};
use super::transfer::{PIECE_BYTES, SiteClient};
use crate::judged_figure::JudgedFigure;
use crate::state_cost::report::median;

/// Bytes of a file.
const FILE_BYTES: u64 = 256 << 20;
/// The number of files in a round: 1 GiB is written, and 1 GiB read.
const FILES: u64 = 4;
/// The number of data servers.
const STORES: usize = 2;
/// Largest part of the time that serving the bytes itself takes.
const PART_MOST: f64 = 0.01;
/// Time in which the metadata server finishes what follows a call, such as labels.
const SETTLE: Duration = Duration::from_millis(2_000);
/// Rounds, and rounds of a quick run.
const ROUNDS: (usize, usize) = (3, 1);

/// Measures one server after the other, round by round.
pub(super) fn measure(bench: &PnfsBench) -> Result<Vec<JudgedFigure>> {
    let site = |stores| {
        let places = StorePlace::on_loopback(stores)?;
        PlacedSite::start(bench, bench.memory.path(), &places)
    };
    let sites = [site(0)?, site(STORES)?];
    let mut clients = [SiteClient::connect(&sites[0])?, SiteClient::connect(&sites[1])?];
    let data = fixture_tree::content(0, PIECE_BYTES as usize);
    let (mut times, mut parts) = ([Vec::new(), Vec::new()], Vec::new());
    for _ in 0..if bench.quick { ROUNDS.1 } else { ROUNDS.0 } {
        let mut of_round = [0.0; 2];
        for (at, (site, client)) in sites.iter().zip(&mut clients).enumerate() {
            let before = site.mds.cpu_time()?;
            for number in 0..FILES {
                let name = format!("moved-{number}");
                move_file(client, (&name, FILE_BYTES), (at == 1, &data))?;
            }
            sleep(SETTLE);
            let gib = (2 * FILES * FILE_BYTES) as f64 / f64::from(1 << 30);
            of_round[at] = site.mds.cpu_time()?.since(&before) as f64 / 1e6 / gib;
            times[at].push(of_round[at]);
        }
        parts.push(of_round[1] / of_round[0]);
    }
    let [itself, by_layouts] = times.map(median);
    let shown = JudgedFigure::shown;
    let part = median(parts.clone());
    Ok(vec![
        shown("a server that serves the data itself, ms of its time for a GiB", itself),
        shown("a metadata server of two data servers, ms of its time for a GiB", by_layouts),
        JudgedFigure::bounded("the second as a part of the first", part, PART_MOST)
            .of_rounds(&parts),
    ])
}

/// Writes a file and reads it again, each with an open of its own.
fn move_file(
    client: &mut SiteClient,
    (name, bytes): (&str, u64),
    (by_layout, data): (bool, &[u8]),
) -> Result<()> {
    let opened = client.open(name)?;
    match by_layout {
        true => client.write_by_layout(&opened, bytes, data)?,
        false => client.write(&opened, bytes, data)?,
    }
    client.close(&opened)?;
    let opened = client.open(name)?;
    match by_layout {
        true => client.read_by_layout(&opened, bytes)?,
        false => client.read(&opened, bytes)?,
    }
    client.close(&opened)
}
