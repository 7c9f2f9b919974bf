//! A drained head moves its exports to other heads, one after the other, until it has none.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use comity_server::LogRateLimit;

use super::export_move::group_of;
use super::export_watch::{ClusterParts, ClusterView};
use super::failed_moves::FailedMoves;
use super::head::note_of_change;
use super::moves::ClusterMoves;

/// Time between two looks for exports that are due to move.
const PERIOD: Duration = Duration::from_secs(1);

/// Moves the exports away while this head is drained.
pub(crate) struct HeadDrain {
    cluster: ClusterParts,
    moves: Arc<ClusterMoves>,
    failed: FailedMoves,
}

impl HeadDrain {
    /// Looks each second, until what it returns is dropped; no further move begins then.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub(crate) fn begin(cluster: ClusterParts, moves: Arc<ClusterMoves>) -> Result<Sender<()>> {
        let mut drain = Self { cluster, moves, failed: FailedMoves::default() };
        let (stop, stopped) = channel();
        let work = move || {
            while stopped.recv_timeout(PERIOD) == Err(RecvTimeoutError::Timeout) {
                drain.pass(&stopped);
            }
        };
        let thread = thread::Builder::new().name("drain".into()).spawn(work);
        thread.context("cannot start the thread that drains this head")?;
        Ok(stop)
    }

    fn pass(&mut self, stopped: &Receiver<()>) {
        static LOG: LogRateLimit = LogRateLimit::new();
        let is_drained = self.cluster.status.is_drained(&self.cluster.head.run.name);
        if !is_drained && self.failed.is_empty() {
            return;
        }
        if let Err(error) = self.move_due(stopped) {
            LOG.say(|suppressed| tracing::warn!(suppressed, "{error:#}"));
        }
    }

    /// Moves the exports that are due, until none is or the server stops.
    fn move_due(&mut self, stopped: &Receiver<()>) -> Result<()> {
        while stopped.try_recv() == Err(TryRecvError::Empty) {
            let view = ClusterView::read(&self.cluster.head.etcd)?;
            let due = self.due(&view);
            self.tell(&view)?;
            match due {
                Some(path) => self.attempt(&view, &path),
                None => return Ok(()),
            }
        }
        Ok(())
    }

    /// Returns an export that is due to move, and forgets the failures of those that have left.
    fn due(&mut self, view: &ClusterView) -> Option<PathBuf> {
        let own = &self.cluster.head.run;
        let is_drained = view.drained.contains(&own.name);
        self.failed.keep(|path| is_drained && view.served.get(path) == Some(own));
        let here = view.served.iter().filter(|(_, at)| is_drained && *at == own);
        self.failed.next(here.map(|(path, _)| path), Instant::now()).cloned()
    }

    /// Tells all heads why exports are here still.
    fn tell(&self, view: &ClusterView) -> Result<()> {
        let mut changes = view.drained.telling(&self.cluster.head, &self.failed.reasons());
        if !changes.is_empty() {
            changes.push(note_of_change());
            self.cluster.head.records.change(changes)?;
        }
        Ok(())
    }

    /// Moves an export, with those that have the same address. If a head refuses, the next attempt
    /// asks another one.
    fn attempt(&mut self, view: &ClusterView, path: &Path) {
        let count = self.failed.count(path);
        // A move waits until nobody uses the plan any more.
        let group = group_of(&self.cluster.exports.current(), path);
        let (paths, _) = match group {
            Ok(group) => group,
            Err(why) => return self.note(vec![path.to_owned()], (count.saturating_add(1), &why)),
        };
        let takers = view.takers(&self.cluster.head.run, self.home(&paths).as_deref());
        let Some(to) = takers.get(count as usize % takers.len().max(1)) else {
            return self.note(paths, (count, &anyhow!("no other head is up that is not drained")));
        };
        if let Err(why) = self.moves.carry_out(path, &to.name) {
            self.note(paths, (count.saturating_add(1), &why));
        }
    }

    /// Returns the head that `home` names for one of these exports.
    fn home(&self, paths: &[PathBuf]) -> Option<String> {
        let plan = self.cluster.exports.current();
        let mut exports = paths.iter().filter_map(|path| plan.export_at(path));
        exports.find_map(|export| export.settings().home.as_deref().map(str::to_owned))
    }

    /// Notes why exports did not move.
    fn note(&mut self, paths: Vec<PathBuf>, (count, why): (u32, &anyhow::Error)) {
        let reason = format!("{why:#}");
        for path in paths {
            let export = path.display().to_string();
            if self.failed.note(path, (count, &reason)) {
                tracing::warn!(export, "an export stays at this drained head: {reason}");
            }
        }
    }
}
