//! The table of docs/benchmarks.md: what each operation costs, beside other servers in one run.

mod line;
mod measure;
mod report;
mod rows;
mod shape;

use std::path::PathBuf;

use anyhow::{Context, Result};
use comity_bench::targets;

use crate::row_options::RowOptions;
use crate::server_process::{self, SERVER_PROCESSOR, ServerProcess, TestBed};
use comity_bench::process;

pub use line::{Line, Spread};
pub(crate) use measure::Sample;

/// Options of the table.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// The servers and the rows that are measured.
    #[command(flatten)]
    pub rows: RowOptions,
    /// The other server to compare with.
    #[arg(long, default_value = "ganesha")]
    pub against: Against,
    /// Also write the figures, every sample of them, to this file.
    #[arg(long)]
    pub json: Option<PathBuf>,
}

/// The other server to compare with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Against {
    /// nfs-ganesha as Debian delivers it.
    Ganesha,
    /// None.
    None,
}

/// Everything a measurement needs: a tree of files, and servers on it.
struct Bench {
    /// The minimal server, comity, and the peer if there is one.
    targets: Vec<ServerProcess>,
    test_bed: TestBed,
    rounds: usize,
    /// Seconds of one sample.
    seconds: f64,
    quick: bool,
}

/// Rounds of a whole run and of a quick one.
const ROUNDS: (usize, usize) = (7, 3);
/// Seconds of a sample in a whole run and in a quick one.
const SECONDS: (f64, f64) = (0.4, 0.15);

/// Measures the requested rows, prints the table and returns whether all rows reach their bounds.
///
/// # Errors
/// A server does not start, or answers wrongly.
pub fn run(options: &Options) -> Result<bool> {
    let inside = targets::enter_namespace()?;
    raise_descriptor_limit()?;
    let bench = Bench::start(options, inside)?;
    process::pin(None, &[server_process::LOAD_PROCESSOR])?;
    report::heading(&bench);
    let mut lines = Vec::new();
    for row in rows::ROWS.iter().filter(|row| options.rows.is_wanted(row.name)) {
        let line = row.measure(&bench).with_context(|| row.name.to_owned())?;
        report::print(&line);
        lines.push(line);
    }
    if let Some(path) = &options.json {
        report::write_json(path, &bench, &lines)?;
    }
    Ok(report::verdict(&lines))
}

impl Bench {
    fn start(options: &Options, inside: bool) -> Result<Self> {
        let test_bed = TestBed::make(&options.rows.subject)?;
        let targets = start_targets(options, &test_bed, inside)?;
        let pick = |(whole, quick)| if options.rows.quick { quick } else { whole };
        let seconds = if options.rows.quick { SECONDS.1 } else { SECONDS.0 };
        let (rounds, quick) = (pick(ROUNDS), options.rows.quick);
        Ok(Self { targets, test_bed, rounds, seconds, quick })
    }

    fn target(&self, name: &str) -> Option<&ServerProcess> {
        self.targets.iter().find(|target| target.name == name)
    }
}

fn start_targets(
    options: &Options,
    test_bed: &TestBed,
    inside: bool,
) -> Result<Vec<ServerProcess>> {
    let mut targets = vec![server_process::start_raw(&test_bed.layout)?];
    targets.push(test_bed.start_comity(&[SERVER_PROCESSOR], false)?);
    if options.against == Against::Ganesha {
        if !inside {
            println!("skipped: ganesha, because that takes root (a network of its own)");
        } else if !targets::is_ganesha_installed() {
            println!("skipped: ganesha, because nfs-ganesha, -vfs and rpcbind are not installed");
        } else {
            let (layout, work) = (&test_bed.layout, &test_bed.work);
            targets.push(server_process::start_ganesha(layout, work, &[SERVER_PROCESSOR])?);
        }
    }
    Ok(targets)
}

/// Raises the limit of descriptors, because thousands of connections need as many.
fn raise_descriptor_limit() -> Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?)
}
