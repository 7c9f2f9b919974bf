use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::call_counts::{calls_among, difference};
use super::time_budget::TimeBudget;
use super::{Content, Driver, Latency, Parameters, Place, Progress, Sample, Tally, Target, Unit};
use crate::rng::Rng;

/// Time in which calls reach the server that a client sends without waiting for them.
const CALLS_SETTLE: Duration = Duration::from_millis(200);

/// The input of one round of a workload, and the place for its measurements.
pub struct Context<'a> {
    pub(crate) target: &'a dyn Target,
    pub(crate) parameters: &'a Parameters,
    pub(crate) seed: u64,
    pub(crate) directory: String,
    pub(crate) content: Arc<Content>,
    pub(crate) interrupt: Interrupt,
    pub(crate) reset: &'a dyn Reset,
    pub(crate) progress: &'a Progress,
    pub(crate) time: TimeBudget,
    pub(crate) gathered: Gathered,
}

/// The measurements of a round so far.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) samples: Vec<Sample>,
    pub(crate) latencies: Vec<Latency>,
    pub(crate) notes: Vec<String>,
}

/// A flag that is set when the user wants the run to end.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

/// The error of an operation that was not begun because of an [`Interrupt`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl Interrupt {
    /// Sets the flag.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns whether the flag is set.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Fails if the flag is set.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub fn check(&self) -> Result<()> {
        if self.is_set() {
            bail!(Interrupted);
        }
        Ok(())
    }
}

/// The way in which caches between a worker and the disk are emptied.
pub trait Reset: Send + Sync {
    /// Empties the caches; returns false if there is no way to, so that they may be warm.
    ///
    /// # Errors
    /// A hook or an agent failed.
    fn reset(&self) -> Result<bool>;

    /// The name of the way in which caches are emptied, for the result.
    fn about(&self) -> String;
}

impl<'a> Context<'a> {
    /// The target.
    #[must_use]
    pub const fn target(&self) -> &'a dyn Target {
        self.target
    }

    /// The workload's parameters.
    #[must_use]
    pub const fn parameters(&self) -> &'a Parameters {
        self.parameters
    }

    /// The seed of this workload and round.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Random numbers for one part of the work: the same for the same seed and part.
    #[must_use]
    pub fn rng(&self, part: u64) -> Rng {
        Rng::branch(self.seed, part)
    }

    /// A path in this round's own directory.
    #[must_use]
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory)
    }

    /// The path of this round's own directory, below the target's top.
    #[must_use]
    pub fn directory(&self) -> &str {
        &self.directory
    }

    /// A driver for a new worker.
    ///
    /// # Errors
    /// The target is gone, or refuses another connection.
    pub fn driver(&self) -> Result<Driver> {
        let files = self.target.files().with_context(|| format!("open {}", self.target.name()))?;
        Ok(Driver::new(files, Arc::clone(&self.content), self.interrupt.clone()))
    }

    /// Runs workers at the same time, each on a thread of its own; returns their joint tally. Its
    /// time is the longest that a worker spent in operations.
    ///
    /// # Errors
    /// The first failure of a worker.
    pub fn parallel(
        &self,
        drivers: &mut [Driver],
        work: impl Fn(usize, &mut Driver) -> Result<()> + Sync,
    ) -> Result<Tally> {
        let work = &work;
        thread::scope(|scope| {
            let threads: Vec<_> = drivers
                .iter_mut()
                .enumerate()
                .map(|(number, driver)| scope.spawn(move || work(number, driver)))
                .collect();
            let ended: Vec<Result<()>> = threads.into_iter().map(joined).collect();
            ended.into_iter().collect::<Result<()>>()
        })?;
        let mut sum = Tally::default();
        drivers.iter_mut().for_each(|driver| sum.merge(driver.take_tally()));
        Ok(sum)
    }

    /// Stores a measured number.
    pub fn sample(&mut self, metric: &str, at: &[(&str, Place)], value: f64, unit: Unit) {
        let at = at.iter().map(|(name, place)| ((*name).to_owned(), place.clone())).collect();
        self.keep(Sample { metric: metric.to_owned(), at, value, unit });
    }

    /// Stores a finished sample. A value that is not finite becomes a note, because JSON could not
    /// represent it.
    pub fn keep(&mut self, sample: Sample) {
        match sample.value.is_finite() {
            true => self.gathered.samples.push(sample),
            false => self.note(format!("{}: no figure, nothing was done", sample.metric)),
        }
    }

    /// Does a part of the work; stores the number of calls that it caused as `calls: METRIC`, if
    /// the target can count them.
    ///
    /// # Errors
    /// The work failed, or the calls cannot be read.
    pub fn counting_calls<T>(
        &mut self,
        metric: &str,
        at: &[(&str, Place)],
        work: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = self.target.calls()?;
        let done = work(self)?;
        if let Some(before) = before {
            // Clients send some calls, such as CLOSE, without waiting for the reply.
            thread::sleep(CALLS_SETTLE);
            let after = self.target.calls()?.unwrap_or_default();
            let calls = calls_among(&difference(&before, &after));
            self.sample(&format!("calls: {metric}"), at, calls as f64, Unit::Count);
        }
        Ok(done)
    }

    /// Stores latencies.
    pub fn latency(&mut self, latency: Latency) {
        self.gathered.latencies.push(latency);
    }

    /// Stores the latencies of a tally, one distribution for each kind.
    pub fn latencies(&mut self, tally: &Tally) {
        self.gathered.latencies.extend(tally.latencies());
    }

    /// Stores a note for readers of the figures; a repeated note is stored once.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.gathered.notes.contains(&text) {
            self.gathered.notes.push(text);
        }
    }

    /// Empties caches if there is a way to; returns whether they are cold afterwards. The target
    /// may be unmounted and mounted again: no [`Driver`] may exist meanwhile.
    ///
    /// # Errors
    /// A hook or an agent failed.
    pub fn reset_caches(&self) -> Result<bool> {
        self.interrupt.check()?;
        self.reset.reset()
    }

    /// Shows how much of the round is done, from 0 to 1.
    pub fn advance(&self, share: f64) {
        self.progress.advance(share);
    }

    /// The time that the round should still take, if time is limited; a workload that chooses its
    /// own duration must obey it.
    #[must_use]
    pub fn time_left(&self) -> Option<Duration> {
        self.time.left()
    }

    /// The interrupt, for work that does not go through a [`Driver`].
    #[must_use]
    pub const fn interrupt(&self) -> &Interrupt {
        &self.interrupt
    }

    /// The content of the seed's files.
    #[must_use]
    pub const fn content(&self) -> &Arc<Content> {
        &self.content
    }
}

/// Returns the result of a thread; a panic is an error.
pub(crate) fn joined(thread: thread::ScopedJoinHandle<'_, Result<()>>) -> Result<()> {
    match thread.join() {
        Ok(result) => result,
        Err(_) => bail!("a worker failed by a fault of this program"),
    }
}
