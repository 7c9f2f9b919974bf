use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

/// Lengths of chains that are compared.
pub const CHAIN_LENGTHS: [usize; 6] = [1, 2, 3, 4, 8, 16];
/// Numbers of credentials held by one key that are compared.
pub const CREDENTIALS: [usize; 2] = [10, 10_000];
/// Number of credentials for one folder: the most expensive set that a key can hold.
pub const OF_ONE_FOLDER: usize = 1_000;
/// Numbers of objects whose decisions are cached.
pub const SIZES: [usize; 6] = [1, 8, 64, 256, 1_024, 16_384];

/// Processor time of the same work, in nanoseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct BothCosts {
    /// The work by an account.
    pub account: f64,
    /// The work by grants.
    pub key: f64,
}

impl BothCosts {
    /// The time that grants take in addition to the work.
    pub(super) const fn more(&self) -> f64 {
        self.key - self.account
    }
}

/// The figures of one round. Processor time is in nanoseconds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct RoundCosts {
    /// A search of all files by a chain of 3 for the tree.
    pub grep: BothCosts,
    /// A search of [`RoundCosts::own_chains`] files, each with a chain of 3 of its own.
    pub grep_of_own_chains: BothCosts,
    /// The file work of a build.
    pub build: BothCosts,
    /// `PostMark`.
    pub postmark: BothCosts,
    /// One signature.
    pub signature: f64,
    /// The first decision about a file.
    pub decision: f64,
    /// A decision from the table.
    pub kept: f64,
    /// The first decision by each of [`CHAIN_LENGTHS`].
    pub chains: Vec<f64>,
    /// The first decision if a key holds each number of [`CREDENTIALS`].
    pub credentials: Vec<f64>,
    /// The first decision if a key holds [`OF_ONE_FOLDER`] credentials for the folder.
    pub one_folder: f64,
    /// A read by the account, then by a grant for each of [`SIZES`].
    pub sizes: Vec<f64>,
}

impl RoundCosts {
    /// The number of files with a chain of their own, in a tree of `files` files.
    #[must_use]
    pub const fn own_chains(files: u64) -> u64 {
        if files < OWN_CHAINS_MAX { files } else { OWN_CHAINS_MAX }
    }
}

/// Most files with a chain of their own: each takes three signatures.
const OWN_CHAINS_MAX: u64 = 500;

/// Runs the program once for each round, each time as a server that was just started.
///
/// # Errors
/// The program is missing or fails.
pub(super) fn take(
    program: &Path,
    (tree, files): (&Path, u64),
    rounds: usize,
) -> Result<Vec<RoundCosts>> {
    let round = |_| {
        let mut command = Command::new(program);
        command.arg("grants").arg(tree).arg(files.to_string()).stderr(Stdio::inherit());
        let ran = command.output().with_context(|| program.display().to_string())?;
        ensure!(ran.status.success(), "{} grants: {}", program.display(), ran.status);
        serde_json::from_slice(&ran.stdout).context("no sample")
    };
    (0..rounds.max(1)).map(round).collect()
}

/// The median of each figure.
pub(super) fn median(samples: &[RoundCosts]) -> RoundCosts {
    let of = |figure: &dyn Fn(&RoundCosts) -> f64| middle(samples.iter().map(figure).collect());
    let pair = |pair: &dyn Fn(&RoundCosts) -> BothCosts| {
        // Take the difference within a round, because the speed of the machine differs between
        // rounds.
        let more = of(&|sample| pair(sample).more());
        let account = of(&|sample| pair(sample).account);
        BothCosts { account, key: account + more }
    };
    let series = |figures: &dyn Fn(&RoundCosts) -> &[f64]| {
        let length = samples.first().map_or(0, |sample| figures(sample).len());
        (0..length).map(|at| of(&|sample| figures(sample)[at])).collect()
    };
    RoundCosts {
        grep: pair(&|sample| sample.grep),
        grep_of_own_chains: pair(&|sample| sample.grep_of_own_chains),
        build: pair(&|sample| sample.build),
        postmark: pair(&|sample| sample.postmark),
        signature: of(&|sample| sample.signature),
        decision: of(&|sample| sample.decision),
        kept: of(&|sample| sample.kept),
        chains: series(&|sample| &sample.chains),
        credentials: series(&|sample| &sample.credentials),
        one_folder: of(&|sample| sample.one_folder),
        sizes: series(&|sample| &sample.sizes),
    }
}

/// The median of some figures; 0 of none.
pub(super) fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}
