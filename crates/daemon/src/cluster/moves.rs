//! Moves from this head, as administrators ask for them.

use std::path::Path;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::export_move::ExportMove;
use super::export_watch::ClusterParts;
use crate::migration::{
    MOVING, MigrationParts, MigrationStep, MigrationThreads, PreparedMigration,
};
use crate::state_folder::random;

/// Time between two questions whether a move has ended. Commands ask meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

/// Moves exports from this head to others, one move at a time.
pub(crate) struct ClusterMoves {
    cluster: ClusterParts,
    parts: MigrationParts,
    threads: MigrationThreads,
}

impl ClusterMoves {
    pub(crate) fn new(cluster: ClusterParts, parts: MigrationParts) -> Self {
        Self { cluster, parts, threads: MigrationThreads::default() }
    }

    /// Asks the other head whether it could take an export.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(crate) fn try_out(&self, export: &Path, to: &str) -> Result<Value> {
        let moving = ExportMove::new((&self.cluster, &self.parts), (export, to))?;
        moving.try_out()?;
        Ok(json!({ "state": "possible", "exports": moving.paths }))
    }

    /// Begins to move an export, and those with the same address, or asks for the state of the
    /// move. It goes on even if the command stops asking.
    ///
    /// # Errors
    /// The reason why the exports were not moved.
    pub(crate) fn advance(&self, export: &Path, (to, run): (&str, u64)) -> Result<Value> {
        self.threads.advance((to, run), || {
            let moving = ExportMove::new((&self.cluster, &self.parts), (export, to))?;
            let exports = moving.paths.clone();
            let work = Box::new(move |progress: &MigrationStep| moving.carry_out(progress));
            Ok(PreparedMigration { to: to.to_owned(), exports, warnings: Vec::new(), work })
        })
    }

    /// Moves an export, and those with the same address.
    ///
    /// # Errors
    /// The reason why the exports were not moved.
    pub(super) fn carry_out(&self, export: &Path, to: &str) -> Result<()> {
        let run = u64::from_ne_bytes(random()?);
        while self.advance(export, (to, run))?["state"] == MOVING {
            thread::sleep(PAUSE);
        }
        Ok(())
    }
}
