//! The cost of state, compared with what CITI measured in 2006. Locks are split, merged and
//! transferred, delegations are recalled and granted, and the memory of all this is measured.

mod callback_client;
mod delegated;
mod memory;
pub(crate) mod person;
mod ranges;
mod recall;
pub(crate) mod report;
mod waiters;

use anyhow::{Context, Result};

use crate::row_options::RowOptions;
use crate::server_process::{LOAD_PROCESSOR, SERVER_PROCESSOR, ServerProcess, TestBed};
use comity_bench::process;

/// The name and the function of a measure, which returns whether the cost is within its bound.
type Measure = (&'static str, fn(&Bench) -> Result<bool>);

/// The table, by the names of the specification.
const MEASURES: &[Measure] = &[
    ("split one lock into 30,000", ranges::split),
    ("join 30,000", ranges::join),
    ("recall of a delegation whose client holds n locks", recall::recall),
    ("handing a lock to the next of N waiters", waiters::hand_over),
    ("OPEN with a delegation granted, against without", delegated::opens),
    ("memory of clients, opens and delegations", memory::weigh),
];

/// The servers and options that the measures need.
struct Bench {
    test_bed: TestBed,
    quick: bool,
}

/// Measures and prints, and returns whether all costs are within their bounds.
///
/// # Errors
/// The server does not start, or a call is not answered as it must be.
pub fn run(options: &RowOptions) -> Result<bool> {
    let bench = Bench { test_bed: TestBed::make(&options.subject)?, quick: options.quick };
    process::pin(None, &[LOAD_PROCESSOR])?;
    let mut missed = Vec::new();
    for (name, measure) in MEASURES.iter().filter(|(name, _)| options.is_wanted(name)) {
        println!("{name}");
        if !measure(&bench).with_context(|| (*name).to_owned())? {
            missed.push(*name);
        }
        println!();
    }
    missed.iter().for_each(|name| println!("missed: {name}"));
    Ok(missed.is_empty())
}

impl Bench {
    /// Starts a server without clients.
    fn server(&self) -> Result<ServerProcess> {
        self.test_bed.start_comity(&[SERVER_PROCESSOR], true)
    }

    /// Starts a server that does not enforce its clients' state against local programs. Otherwise
    /// each delegated file would need a descriptor, and a process may have fewer descriptors than
    /// delegations.
    fn server_apart(&self) -> Result<ServerProcess> {
        self.test_bed.start_comity_with(&[SERVER_PROCESSOR], true, &["--no-local-locks"])
    }

    /// A number, or a tenth of it in a quick run.
    const fn scaled(&self, number: u64) -> u64 {
        if self.quick { number / 10 } else { number }
    }

    /// The path of a directory of the tree from the server's root.
    fn path(&self, directory: &str) -> String {
        format!("{}/{directory}", self.test_bed.layout.root().display())
    }

    /// Returns the path of a directory with `files` empty files, which is made if it does not
    /// exist.
    fn many(&self, files: u64) -> Result<String> {
        let name = format!("many-{files}");
        if !self.test_bed.layout.root().join(&name).exists() {
            self.test_bed.layout.listing(&name, files as usize)?;
        }
        Ok(self.path(&name))
    }
}

/// Processor time that a server uses for something, in microseconds.
fn server_time<T>(server: &ServerProcess, what: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let before = server.cpu_time()?;
    let done = what()?;
    Ok((done, server.cpu_time()?.since(&before) as f64 / 1e3))
}
