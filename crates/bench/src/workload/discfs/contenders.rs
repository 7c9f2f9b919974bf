use anyhow::Result;

use super::plant;
use crate::suite::{ByKey, Context, Driver, Place};
use crate::workload::tree::Tree;

/// Links of the chain by which the key of a worker got its rights.
const CHAIN: usize = 3;
/// Objects whose decisions the server keeps, as many as in 2003.
const DECISIONS: usize = 1_024;
/// Runs of each worker: the first one by grants is COLD, the second WARM.
const RUNS: u64 = 2;

/// A worker under the key of an account, and one under a new key that acts by grants.
pub(super) struct Contenders {
    account: Driver,
    key: Driver,
}

impl Contenders {
    /// Connects both.
    ///
    /// # Errors
    /// The target does not let them in.
    pub(super) fn begin(context: &Context<'_>) -> Result<Self> {
        let account = by_key(context, ByKey { chain: 0, decisions: DECISIONS })?;
        let key = by_key(context, ByKey { chain: CHAIN, decisions: DECISIONS })?;
        Ok(Self { account, key })
    }

    /// Lets both do the same in turn, twice, each time in a directory of their own. The seed says
    /// which of them begins.
    ///
    /// # Errors
    /// The work fails.
    pub(super) fn take_turns(
        &mut self,
        context: &mut Context<'_>,
        part: &str,
        work: impl Fn(&mut Context<'_>, &mut Driver) -> Result<()>,
    ) -> Result<()> {
        self.in_turn(context, part, |context, driver, turn| {
            let home = context.path(&format!("{part}-{turn}"));
            driver.make_directory(&home)?;
            driver.take_tally();
            let home = std::mem::replace(&mut context.directory, home);
            let worked = work(context, driver);
            context.directory = home;
            worked
        })
    }

    /// Makes a tree in the context's directory, and lets both work on it in turn, twice.
    ///
    /// # Errors
    /// The work fails.
    pub(super) fn on_tree(
        &mut self,
        context: &mut Context<'_>,
        part: &str,
        tree: &Tree,
        work: impl Fn(&mut Context<'_>, &mut Driver) -> Result<()>,
    ) -> Result<()> {
        plant(context, &mut self.account, tree)?;
        self.in_turn(context, part, |context, driver, _| {
            driver.take_tally();
            work(context, driver)
        })
    }

    fn in_turn(
        &mut self,
        context: &mut Context<'_>,
        part: &str,
        work: impl Fn(&mut Context<'_>, &mut Driver, u64) -> Result<()>,
    ) -> Result<()> {
        let key_begins = context.seed().is_multiple_of(2);
        for run in 1..=RUNS {
            let by_grants = if run == 1 { "COLD" } else { "WARM" };
            let mut both = [("NK", &mut self.account), (by_grants, &mut self.key)];
            if key_begins {
                both.reverse();
            }
            for (number, (rights, driver)) in both.into_iter().enumerate() {
                let turn = 2 * run + number as u64;
                let at = [("rights", rights.into()), ("run", run.into())];
                labelled(context, part, &at, |context| work(context, driver, turn))?;
            }
        }
        Ok(())
    }
}

/// A worker under a key.
///
/// # Errors
/// The target does not let it in.
pub(super) fn by_key(context: &Context<'_>, by: ByKey) -> Result<Driver> {
    let files = context.target().files_by_key(by)?;
    Ok(Driver::new(files, context.content().clone(), context.interrupt().clone()))
}

/// Does a work, and adds the name of its part and its circumstances to what it measures.
///
/// # Errors
/// The work fails.
pub(super) fn labelled(
    context: &mut Context<'_>,
    part: &str,
    at: &[(&str, Place)],
    work: impl FnOnce(&mut Context<'_>) -> Result<()>,
) -> Result<()> {
    let (samples, latencies) = (context.gathered.samples.len(), context.gathered.latencies.len());
    work(context)?;
    let places = || at.iter().map(|(name, place)| ((*name).to_owned(), place.clone()));
    for sample in &mut context.gathered.samples[samples..] {
        sample.metric = format!("{part} {}", sample.metric);
        sample.at.extend(places());
    }
    for latency in &mut context.gathered.latencies[latencies..] {
        latency.operation = format!("{} of {part}", latency.operation);
        latency.at.extend(places());
    }
    Ok(())
}
