use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, ensure};
use comity_bench::fixture_tree::{FixtureTree, LARGE_BYTES};
use comity_proto::nfs3::{self, Read3args, StableHow, Write3args, procedure};
use comity_remote::rpc::{Duplex, RESULTS_AT, call_header, caller_ids, receive, record_before};
use comity_xdr::Opaque;

use super::bed::{Bed, Route};

/// Bytes of a READ or WRITE.
const BYTES: u64 = 1 << 20;
/// Number of calls in a sample, which takes about a second; the second number is for `--quick`.
const CALLS: (u64, u64) = (1_024, 128);
/// Number of outstanding calls.
const DEPTH: u64 = 4;

/// The direction of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DataDirection {
    Read,
    Write,
}

impl DataDirection {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Read => "READ of 1 MiB",
            Self::Write => "WRITE of 1 MiB",
        }
    }

    /// The name of a file to use.
    fn file(self) -> String {
        match self {
            Self::Read => FixtureTree::read_file(),
            Self::Write => FixtureTree::written_file(0),
        }
    }
}

/// Returns the bytes transferred in a second of the processor time of the server and of stunnel.
///
/// # Errors
/// If the server has ended, or its answer is wrong.
pub(super) fn bytes_a_second(
    bed: &Bed,
    route: Route,
    (direction, is_quick): (DataDirection, bool),
) -> Result<f64> {
    let calls = if is_quick { CALLS.1 } else { CALLS.0 };
    let path = direction.file();
    let names: Vec<&str> = path.split('/').collect();
    let file = bed.find(&names)?;
    let mut stream = bed.connect(route)?;
    run(&mut *stream, &file, direction, 2 * DEPTH)?;
    let seconds = bed.processor_seconds(|| run(&mut *stream, &file, direction, calls))?;
    Ok((calls * BYTES) as f64 / seconds)
}

/// Makes `calls` calls, [`DEPTH`] of them outstanding.
fn run(stream: &mut dyn Duplex, file: &[u8], direction: DataDirection, calls: u64) -> Result<()> {
    let mut records: Vec<_> =
        (0..LARGE_BYTES / BYTES).map(|at| record(file, direction, at * BYTES)).collect();
    for number in 0..calls + DEPTH {
        if number < calls {
            let place = number as usize % records.len();
            let record = &mut records[place];
            // Each call differs, because the server would answer a repeated one from its cache.
            record[4..8].copy_from_slice(&next_xid().to_be_bytes());
            stream.write_all(record)?;
            stream.flush()?;
        }
        if number >= DEPTH {
            check(&receive(stream)?, direction)?;
        }
    }
    Ok(())
}

/// A number that no other call of this process has.
fn next_xid() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(1);
    LAST.fetch_add(1, Ordering::Relaxed)
}

fn record(file: &[u8], direction: DataDirection, offset: u64) -> Vec<u8> {
    let header = |number| call_header((nfs3::PROGRAM, nfs3::VERSION, number), caller_ids());
    let (file, count) = (Opaque(file), BYTES as u32);
    match direction {
        DataDirection::Read => {
            record_before(&header(procedure::READ), &Read3args { file, offset, count }, 0)
        }
        DataDirection::Write => {
            let (stable, data) = (StableHow::Unstable, vec![7; BYTES as usize]);
            let arguments = Write3args { file, offset, count, stable, data: Opaque(&data) };
            record_before(&header(procedure::WRITE), &arguments, 0)
        }
    }
}

/// Checks that a reply is a success, and that a reply to a READ has all data.
fn check(reply: &[u8], direction: DataDirection) -> Result<()> {
    let is_done = reply.get(RESULTS_AT - 4..RESULTS_AT + 4) == Some(&[0; 8]);
    ensure!(is_done, "{} fails: {:?}", direction.name(), reply.get(..RESULTS_AT + 4));
    let least = if direction == DataDirection::Read { BYTES as usize } else { 0 };
    ensure!(reply.len() > least, "a READ of {} bytes", reply.len());
    Ok(())
}
