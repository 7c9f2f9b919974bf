//! The records of runs that no export needs any more, and their removal from etcd.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use comity_store::{remove_runs, stored_runs};

use super::export_watch::ClusterView;
use super::head::Head;
use super::keys::{self, HeadRun};

/// Time between two searches among the records of all runs. A run is not noted if it ended without
/// exports, or if the head that noted it failed.
const SEARCH: Duration = Duration::from_secs(3600);

/// The runs that an export has just ceased to need.
///
/// To search among all runs takes a request for each, so that a head does it for the exports whose
/// grace period has ended together, and only among their runs.
#[derive(Debug, Default)]
pub(super) struct LeftoverRuns {
    noted: Mutex<BTreeSet<String>>,
    searched: Mutex<Option<Instant>>,
}

impl LeftoverRuns {
    /// Notes runs that an export does not need any more.
    pub(super) fn note(&self, runs: impl IntoIterator<Item = String>) {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).extend(runs);
    }

    /// Removes the records of those noted runs that no export needs. Once an hour the head with the
    /// first name does it for all runs.
    pub(super) fn remove(&self, head: &Head, view: &ClusterView) -> Result<()> {
        let mut unneeded = {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *noted)
        };
        if is_first(head, view) && self.is_search_due() {
            unneeded.extend(stored_runs(&head.etcd)?);
        }
        if unneeded.is_empty() {
            return Ok(());
        }
        keep_needed(head, &mut unneeded)?;
        Ok(remove_runs(&head.records, &unneeded)?)
    }

    fn is_search_due(&self) -> bool {
        let mut searched = self.searched.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = searched.is_none_or(|at| at.elapsed() > SEARCH);
        if is_due {
            *searched = Some(Instant::now());
        }
        is_due
    }
}

fn is_first(head: &Head, view: &ClusterView) -> bool {
    view.heads.iter().all(|other| other.name >= head.run.name)
}

/// Leaves the runs out that are needed. A head that is not up when the heads are read names its run
/// for no export any more.
fn keep_needed(head: &Head, unneeded: &mut BTreeSet<String>) -> Result<()> {
    for entry in head.etcd.range(keys::HEADS)? {
        let up = HeadRun::read(&entry.value).context("the value of a head is malformed")?;
        unneeded.remove(&up.run);
    }
    for entry in head.etcd.range(&keys::all_runs())? {
        for named in keys::read_runs(&entry.value)? {
            unneeded.remove(&named);
        }
    }
    Ok(())
}
