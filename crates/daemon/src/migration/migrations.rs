//! The migration that this server carries out, in a thread of its own, as it takes longer than a
//! request may.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use super::MigrationParts;
use super::departure::{Departure, Moved};

/// Time for which a request waits for the end. Other requests wait meanwhile.
const MOMENT: Duration = Duration::from_millis(100);

/// The state of a migration that is under way, as requests are answered.
pub(crate) const MOVING: &str = "moving";

const NONE_UNDER_WAY: &str =
    "no migration is under way; `comity status` shows where the exports are";

/// Runs migrations from this server to peers.
pub(crate) struct Migrations {
    parts: MigrationParts,
    threads: MigrationThreads,
}

/// The migration that is under way, if there is one.
#[derive(Default)]
pub(crate) struct MigrationThreads(Mutex<Option<MigrationThread>>);

/// Carries a migration out.
pub(crate) type MigrationWork = Box<dyn FnOnce(&MigrationStep) -> Result<Moved> + Send>;

/// A migration that can begin.
pub(crate) struct PreparedMigration {
    /// The name of the target.
    pub(crate) to: String,
    pub(crate) exports: Vec<PathBuf>,
    pub(crate) warnings: Vec<String>,
    pub(crate) work: MigrationWork,
}

/// The step that a migration is at, and whether it is to go on.
#[derive(Clone, Default)]
pub(crate) struct MigrationStep(Arc<Mutex<(&'static str, bool)>>);

impl MigrationStep {
    /// The step in which the target decides.
    pub(crate) const HANDING_OVER: &'static str = "handing over";
    const ENDED: &'static str = "ended";

    /// Notes the step.
    ///
    /// # Errors
    /// The migration was cancelled.
    pub(crate) fn begin(&self, step: &'static str) -> Result<()> {
        let mut now = self.lock();
        ensure!(!now.1, "the migration was cancelled: the exports stay here");
        now.0 = step;
        Ok(())
    }

    /// Checks that the migration was not cancelled.
    ///
    /// # Errors
    /// It was.
    pub(crate) fn check(&self) -> Result<()> {
        self.begin(self.step())
    }

    fn end(&self) {
        self.lock().0 = Self::ENDED;
    }

    /// Cancels the migration to `to`.
    ///
    /// # Errors
    /// It has ended, or the target is being asked to take the exports.
    fn cancel(&self, to: &str) -> Result<()> {
        let mut now = self.lock();
        ensure!(now.0 != Self::ENDED, NONE_UNDER_WAY);
        ensure!(
            now.0 != Self::HANDING_OVER,
            "{to} is being asked to take the exports: wait for the outcome"
        );
        now.1 = true;
        Ok(())
    }

    fn step(&self) -> &'static str {
        self.lock().0
    }

    fn lock(&self) -> MutexGuard<'_, (&'static str, bool)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct MigrationThread {
    to: String,
    /// The number of the run of the command.
    run: u64,
    progress: MigrationStep,
    exports: Vec<PathBuf>,
    warnings: Vec<String>,
    outcome: Receiver<Result<Moved>>,
}

impl Migrations {
    pub(crate) const fn new(parts: MigrationParts) -> Self {
        Self { parts, threads: MigrationThreads(Mutex::new(None)) }
    }

    /// Returns where the moved exports are, for the administrator.
    pub(crate) fn moved(&self) -> Vec<String> {
        self.parts.moved.shown()
    }

    /// Asks the peer whether it could take exports.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(crate) fn try_out(
        &self,
        exports: &[PathBuf],
        (to, forward_seconds): (&str, Option<u64>),
    ) -> Result<Value> {
        let departure = self.departure(exports, (to, forward_seconds))?;
        departure.try_out()?;
        Ok(json!({ "state": "possible", "warnings": departure.warnings()? }))
    }

    /// Begins to move exports, or asks for the state of their move. The migration goes on even if
    /// the command stops asking.
    ///
    /// # Errors
    /// The reason why the exports were not moved.
    pub(crate) fn advance(
        &self,
        exports: &[PathBuf],
        (to, forward_seconds): (&str, Option<u64>),
        run: u64,
    ) -> Result<Value> {
        self.threads.advance((to, run), || {
            let departure = self.departure(exports, (to, forward_seconds))?;
            let warnings = departure.warnings()?;
            let work = Box::new(move |progress: &MigrationStep| departure.carry_out(progress));
            Ok(PreparedMigration { to: to.to_owned(), exports: exports.to_vec(), warnings, work })
        })
    }

    /// Has the migration that is under way end before the target is asked to take the exports.
    ///
    /// # Errors
    /// None is under way, or the target is being asked.
    pub(crate) fn cancel(&self) -> Result<Value> {
        let current = self.threads.lock();
        let running = current.as_ref().context(NONE_UNDER_WAY)?;
        running.progress.cancel(&running.to)?;
        Ok(json!({ "state": "cancelled" }))
    }

    fn departure(
        &self,
        exports: &[PathBuf],
        (to, forward_seconds): (&str, Option<u64>),
    ) -> Result<Departure> {
        Ok(Departure::new(&self.parts, exports, to)?.forwarding(forward_seconds))
    }
}

impl MigrationThreads {
    /// Begins the migration that `prepare` returns, or asks for the state of the one that an
    /// earlier request with the same number of a run has begun.
    ///
    /// # Errors
    /// Another migration is under way; that of `prepare`; or the reason why the exports were not
    /// moved.
    pub(crate) fn advance(
        &self,
        (to, run): (&str, u64),
        prepare: impl FnOnce() -> Result<PreparedMigration>,
    ) -> Result<Value> {
        let mut current = self.lock();
        let running = match current.take() {
            Some(it) if it.run == run && it.to == to => it,
            Some(other) if other.is_under_way() => {
                let shown = other.to.clone();
                *current = Some(other);
                bail!("a migration to {shown} is under way; try again when it has ended");
            }
            _ => MigrationThread::start(prepare()?, run)?,
        };
        match running.outcome.recv_timeout(MOMENT) {
            Ok(outcome) => outcome.map(|moved| shown(&moved, &running)),
            Err(RecvTimeoutError::Timeout) => {
                let step = running.progress.step();
                let answer = json!({ "state": MOVING, "step": step, "warnings": running.warnings });
                *current = Some(running);
                Ok(answer)
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(anyhow!("the migration failed; see the log"))
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<MigrationThread>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MigrationThread {
    fn start(prepared: PreparedMigration, run: u64) -> Result<Self> {
        let PreparedMigration { to, exports, warnings, work } = prepared;
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let (progress, (told, outcome)) = (MigrationStep::default(), channel());
        let work = {
            let progress = progress.clone();
            // The command may have ended, so that nobody receives the outcome.
            move || {
                let outcome = work(&progress);
                progress.end();
                drop(told.send(outcome));
            }
        };
        let thread = thread::Builder::new().name("migration".into()).spawn(work);
        thread.context("the system starts no thread for the migration; try again")?;
        Ok(Self { to, run, progress, exports, warnings, outcome })
    }

    /// Returns whether the migration still runs. If it has ended, this takes its outcome out of the
    /// channel, so that the caller must discard it.
    fn is_under_way(&self) -> bool {
        matches!(self.outcome.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty))
    }
}

fn shown(moved: &Moved, thread: &MigrationThread) -> Value {
    json!({
        "state": "moved",
        "exports": thread.exports,
        "warnings": thread.warnings,
        "clients": moved.clients,
        "states": moved.states,
        "state_bytes": moved.state_bytes,
        "frozen_milliseconds": moved.frozen.as_millis() as u64,
    })
}
