//! The bytes a second that a client reads and writes at several data servers, each at the end of a
//! line of its own with a limited speed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;

use anyhow::{Context, Result, ensure};
use comity_bench::fixture_tree;
use comity_bench::{process, targets};
use comity_proto::nfs4::Layoutiomode4;
use comity_remote::nfs4::{GotLayout, Opened, Session};
use comity_remote::rpc::caller_ids;

use super::PnfsBench;
use super::byte_count::ByteCount;
use super::lines::LimitedLine;
use super::placed_site::PlacedSite;
use super::plain_streams::{LineDirection, PlainStreams};
use super::transfer::{PIECE_BYTES, Pieces, SiteClient};
use crate::judged_figure::JudgedFigure;
use crate::server_process::{LOAD_PROCESSOR, SERVER_PROCESSOR};
use crate::state_cost::report::median;

/// Numbers of data servers.
const STORES: [usize; 3] = [1, 2, 4];
/// Bytes a second of a line: the first of these that plain connections fill on all lines at once.
const RATES: [u64; 3] = [100_000_000, 50_000_000, 25_000_000];
/// The part of all lines that plain connections must fill.
const FILLED_LEAST: f64 = 0.97;
/// The first port of data servers: there is one for each number of data servers.
const PORT: u16 = 2049;
/// Calls outstanding at each data server, each on a connection of its own.
const DEPTH: u64 = 4;
/// Bytes of the file on each data server.
const STORE_BYTES: u64 = 64 << 20;
/// The parts of the sum of the lines that must be reached.
const READ_LEAST: f64 = 0.95;
const WRITE_LEAST: f64 = 0.90;

/// Measures each number of data servers, in turn with plain connections over the same lines.
pub(super) fn measure(bench: &PnfsBench) -> Result<Vec<JudgedFigure>> {
    if !targets::is_inside_namespace() {
        println!("skipped: data servers behind lines, because that takes root");
        return Ok(Vec::new());
    }
    // Everything that moves bytes shares the processors of this machine.
    process::pin(None, &[SERVER_PROCESSOR, LOAD_PROCESSOR])?;
    let lines = LimitedLine::make(4)?;
    let plain = PlainStreams::start(&lines)?;
    let rate = usable_rate(&lines, &plain)?;
    let mut figures =
        vec![JudgedFigure::shown("speed of a line, MB/s in each direction", rate as f64 / 1e6)];
    for (number, stores) in STORES.into_iter().enumerate() {
        let lines = &lines[..stores];
        let places: Vec<_> = lines.iter().map(|line| line.store(PORT + number as u16)).collect();
        let site = PlacedSite::start(bench, bench.memory.path(), &places)?;
        figures.extend(of_site(bench, &site, (stores, rate), &plain)?);
    }
    process::pin(None, &[LOAD_PROCESSOR])?;
    Ok(figures)
}

/// Limits the lines; returns their bytes a second.
fn usable_rate(lines: &[LimitedLine], plain: &PlainStreams) -> Result<u64> {
    for rate in RATES {
        lines.iter().try_for_each(|line| line.limit(rate))?;
        let least = FILLED_LEAST * (rate * lines.len() as u64) as f64;
        let reads = plain.rate(lines.len(), LineDirection::Read)?;
        let writes = plain.rate(lines.len(), LineDirection::Write)?;
        if reads.min(writes) >= least || rate == RATES[RATES.len() - 1] {
            return Ok(rate);
        }
        println!(
            "lines of {} MB/s are too fast for these processors: plain connections carry {:.0} and \
             {:.0} MB/s over {}",
            rate / 1_000_000,
            reads / 1e6,
            writes / 1e6,
            lines.len()
        );
    }
    anyhow::bail!("no speed of the lines")
}

fn of_site(
    bench: &PnfsBench,
    site: &PlacedSite,
    (stores, rate): (usize, u64),
    plain: &PlainStreams,
) -> Result<Vec<JudgedFigure>> {
    let mut client = SiteClient::connect(site)?;
    let opened = client.open("aggregate")?;
    let bytes = STORE_BYTES * stores as u64;
    let data = fixture_tree::content(0, PIECE_BYTES as usize);
    client.write_by_layout(&opened, bytes, &data)?;
    let layout = client.layout(&opened, Layoutiomode4::Rw)?;
    let moved = MovedFile { opened, layout, addresses: client.store_addresses(), data: &data };
    ensure!(moved.layout.handles.len() == stores, "the file is not on all data servers");
    let mut figures = Vec::new();
    for (direction, what, least) in
        [(LineDirection::Read, "read", READ_LEAST), (LineDirection::Write, "written", WRITE_LEAST)]
    {
        let (mut parts, mut ratios) = (Vec::new(), Vec::new());
        for _ in 0..bench.rounds().min(3) {
            let alone = plain.rate(stores, direction)?;
            let by_layout = moved.rate(direction)?;
            parts.push(by_layout / (rate * stores as u64) as f64);
            ratios.push(by_layout / alone);
        }
        let name = format!("{what} at {stores} data servers, as a part of the sum of the lines");
        let part = JudgedFigure::at_least(name, median(parts.clone()), least).of_rounds(&parts);
        let name = "the same, as a part of what plain connections carry";
        let ratio = JudgedFigure::shown(name, median(ratios.clone())).of_rounds(&ratios);
        figures.extend([part, ratio]);
    }
    Ok(figures)
}

/// A file with a layout, and where its data servers are.
struct MovedFile<'a> {
    opened: Opened,
    layout: GotLayout,
    addresses: Vec<SocketAddr>,
    data: &'a [u8],
}

impl MovedFile<'_> {
    /// Returns the bytes a second that go to or come from all data servers at once.
    fn rate(&self, direction: LineDirection) -> Result<f64> {
        let moved = Arc::new(ByteCount::default());
        thread::scope(|scope| {
            for at in 0..self.addresses.len() {
                for lane in 0..DEPTH {
                    let moved = Arc::clone(&moved);
                    scope.spawn(move || {
                        moved.end_if_failed(self.lane((at, lane), direction, &moved));
                    });
                }
            }
            moved.measure()
        })
    }

    /// Makes calls at one data server, one at a time: each lane has its own pieces of the file.
    fn lane(
        &self,
        (at, lane): (usize, u64),
        direction: LineDirection,
        moved: &ByteCount,
    ) -> Result<()> {
        let stores = self.addresses.len() as u64;
        let address = self.addresses.get(at).context("a data server without an address")?;
        let handle = self.layout.handles.get(at).context("a data server without a handle")?;
        let mut session = Session::connect(*address, caller_ids())?;
        let mut pieces = Pieces { session: &mut session, handle, stateid: self.opened.stateid };
        let rows = STORE_BYTES / PIECE_BYTES;
        for row in (0..rows).cycle().skip(lane as usize).step_by(DEPTH as usize) {
            if moved.is_over() {
                break;
            }
            let offset = (row * stores + at as u64) * PIECE_BYTES;
            match direction {
                LineDirection::Read => pieces.read(offset)?,
                LineDirection::Write => pieces.write(offset, self.data)?,
            }
            moved.add(PIECE_BYTES as usize);
        }
        Ok(())
    }
}
