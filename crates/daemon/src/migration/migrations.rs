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

const NONE_UNDER_WAY: &str =
    "no migration is under way; `comity status` shows where the exports are";

/// Runs migrations from this server to peers.
pub(crate) struct Migrations {
    parts: MigrationParts,
    current: Mutex<Option<MigrationThread>>,
}

/// The step that a migration is at, and whether it is to go on.
#[derive(Clone, Default)]
pub(super) struct MigrationStep(Arc<Mutex<(&'static str, bool)>>);

impl MigrationStep {
    /// The step in which the target decides.
    pub(super) const HANDING_OVER: &'static str = "handing over";
    const ENDED: &'static str = "ended";

    /// Notes the step.
    ///
    /// # Errors
    /// The migration was cancelled.
    pub(super) fn begin(&self, step: &'static str) -> Result<()> {
        let mut now = self.lock();
        ensure!(!now.1, "the migration was cancelled: the exports stay here");
        now.0 = step;
        Ok(())
    }

    /// Checks that the migration was not cancelled.
    ///
    /// # Errors
    /// It was.
    pub(super) fn check(&self) -> Result<()> {
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
    warnings: Vec<String>,
    outcome: Receiver<Result<Moved>>,
}

impl Migrations {
    pub(crate) const fn new(parts: MigrationParts) -> Self {
        Self { parts, current: Mutex::new(None) }
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
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match current.take() {
            Some(it) if it.run == run => it,
            Some(other) if other.is_under_way() => {
                let shown = other.to.clone();
                *current = Some(other);
                bail!("a migration to {shown} is under way; try again when it has ended");
            }
            _ => self.start(self.departure(exports, (to, forward_seconds))?, (to, run))?,
        };
        match running.outcome.recv_timeout(MOMENT) {
            Ok(outcome) => outcome.map(|moved| shown(&moved, &running.warnings)),
            Err(RecvTimeoutError::Timeout) => {
                let step = running.progress.step();
                let answer =
                    json!({ "state": "moving", "step": step, "warnings": running.warnings });
                *current = Some(running);
                Ok(answer)
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(anyhow!("the migration failed; see the log"))
            }
        }
    }

    /// Has the migration that is under way end before the target is asked to take the exports.
    ///
    /// # Errors
    /// None is under way, or the target is being asked.
    pub(crate) fn cancel(&self) -> Result<Value> {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn start(&self, departure: Departure, (to, run): (&str, u64)) -> Result<MigrationThread> {
        let (progress, warnings) = (MigrationStep::default(), departure.warnings()?);
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        let (told, outcome) = channel();
        let work = {
            let progress = progress.clone();
            // The command may have ended, so that nobody receives the outcome.
            move || {
                let outcome = departure.carry_out(&progress);
                progress.end();
                drop(told.send(outcome));
            }
        };
        let thread = thread::Builder::new().name("migration".into()).spawn(work);
        thread.context("the system starts no thread for the migration; try again")?;
        Ok(MigrationThread { to: to.to_owned(), run, progress, warnings, outcome })
    }
}

impl MigrationThread {
    /// Returns whether the migration still runs. If it has ended, this takes its outcome out of the
    /// channel, so that the caller must discard it.
    fn is_under_way(&self) -> bool {
        matches!(self.outcome.try_recv(), Err(std::sync::mpsc::TryRecvError::Empty))
    }
}

fn shown(moved: &Moved, warnings: &[String]) -> Value {
    json!({
        "state": "moved",
        "warnings": warnings,
        "clients": moved.clients,
        "states": moved.states,
        "state_bytes": moved.state_bytes,
        "frozen_milliseconds": moved.frozen.as_millis() as u64,
    })
}
