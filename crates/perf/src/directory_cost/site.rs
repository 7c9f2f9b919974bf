//! A server of one export, and mounts of it.

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use comity_bench::{suite, targets};

use crate::row_options::RowOptions;
use crate::server_process::{SERVER_PROCESSOR, ServerProcess, TestBed};

/// Time in which a server finishes what follows a call: a recall, or the return of a delegation.
const SETTLE: Duration = Duration::from_millis(300);

/// Operations of a COMPOUND that only prepare or follow the one for which it is sent.
const PASSING: [&str; 6] = ["SEQUENCE", "PUTFH", "PUTROOTFH", "GETFH", "SAVEFH", "RESTOREFH"];

/// The folder and the options of all servers.
pub(super) struct DelegationBench {
    bed: TestBed,
    /// Fewer rounds.
    pub(super) is_quick: bool,
}

/// A server of an export whose directories are delegated by a policy.
pub(super) struct Site {
    pub(super) server: ServerProcess,
    metrics: SocketAddr,
    program: PathBuf,
    work: PathBuf,
}

/// A mounted directory, which is unmounted when this is dropped.
pub(super) struct MountedExport {
    pub(super) dir: PathBuf,
    program: PathBuf,
    state: PathBuf,
}

/// Operations that a server has executed, by name.
pub(super) struct OperationCounts(BTreeMap<String, u64>);

impl DelegationBench {
    /// Makes the folder.
    ///
    /// # Errors
    /// If the file system fails.
    pub(super) fn make(options: &RowOptions) -> Result<Self> {
        Ok(Self { bed: TestBed::make(&options.subject)?, is_quick: options.quick })
    }

    /// Starts a server whose export has this value of `dir_delegations`.
    ///
    /// # Errors
    /// If the server does not start.
    pub(super) fn serve(&self, dir_delegations: &str) -> Result<Site> {
        let metrics = targets::free_address()?;
        let options = format!("async,dir_delegations={dir_delegations}");
        let shown = ["--metrics", &metrics.to_string()];
        let server = self.bed.start_comity_exporting(&[SERVER_PROCESSOR], &options, &shown)?;
        let work = tempfile::Builder::new().prefix("mounts-").tempdir_in(&self.bed.work)?.keep();
        let program = self.bed.program().canonicalize().context("the comity that is measured")?;
        Ok(Site { server, metrics, program, work })
    }

    /// Makes a new directory in the export; returns its path on the server.
    ///
    /// # Errors
    /// If the file system fails.
    pub(super) fn directory(&self, prefix: &str) -> Result<PathBuf> {
        let made = tempfile::Builder::new().prefix(prefix).tempdir_in(self.bed.layout.root())?;
        let path = made.keep();
        crate::server_process::open_to_all(&path)?;
        Ok(path)
    }
}

impl Site {
    /// Mounts a directory of the server at its own port.
    ///
    /// # Errors
    /// This machine cannot mount by FUSE, or the mount fails.
    pub(super) fn mount(&self, path: &Path, options: &str) -> Result<MountedExport> {
        self.mount_at(self.server.address, path, options)
    }

    /// Mounts a directory of the server through this address.
    ///
    /// # Errors
    /// As [`Self::mount`].
    pub(super) fn mount_at(
        &self,
        address: SocketAddr,
        path: &Path,
        options: &str,
    ) -> Result<MountedExport> {
        let place = tempfile::Builder::new().prefix("mount-").tempdir_in(&self.work)?.keep();
        let [dir, cache, state] = ["on", "cache", "state"].map(|name| place.join(name));
        fs::create_dir(&dir)?;
        let options = format!("dc_root={},{options}", cache.display());
        let source = format!("nfs://{address}{}", path.display());
        let mut mount = Command::new(&self.program);
        mount.arg("mount").arg("--state-dir").arg(&state).args(["-o", &options, &source]);
        let said = mount.arg(&dir).output().context("run comity mount")?;
        ensure!(said.status.success(), "mount: {}", String::from_utf8_lossy(&said.stderr).trim());
        Ok(MountedExport { dir, program: self.program.clone(), state })
    }

    /// Returns the operations that the server executes during `work`, and what it returns.
    ///
    /// # Errors
    /// The metrics page cannot be read, or `work` fails.
    pub(super) fn count<T>(
        &self,
        work: impl FnOnce() -> Result<T>,
    ) -> Result<(T, OperationCounts)> {
        sleep(SETTLE);
        let before = targets::calls_of_comity(self.metrics)?;
        let done = work()?;
        sleep(SETTLE);
        let after = targets::calls_of_comity(self.metrics)?;
        Ok((done, OperationCounts(suite::difference(&before, &after))))
    }

    /// The value of a number on the metrics page, summed over its labels.
    ///
    /// # Errors
    /// The page cannot be read.
    pub(super) fn number(&self, name: &str) -> Result<u64> {
        let page = targets::metrics_page(self.metrics)?;
        let is_it = |line: &&str| line.split(['{', ' ']).next() == Some(name);
        let values = page.lines().filter(is_it).filter_map(|line| line.rsplit(' ').next());
        Ok(values.filter_map(|value| value.parse::<f64>().ok()).sum::<f64>() as u64)
    }
}

impl Drop for MountedExport {
    fn drop(&mut self) {
        let mut umount = Command::new(&self.program);
        umount.args(["umount", "--lazy", "--state-dir"]).arg(&self.state).arg(&self.dir);
        // Nobody could do anything about a failure; the error is on the standard error output.
        let _ = umount.output();
    }
}

impl OperationCounts {
    /// The number of executions of an operation.
    pub(super) fn of(&self, operation: &str) -> u64 {
        self.0.get(operation).copied().unwrap_or(0)
    }

    /// The number of calls: COMPOUNDs that do more than renew a lease.
    pub(super) fn calls(&self) -> u64 {
        self.other_than_getattr() + self.getattrs_alone()
    }

    /// The number of COMPOUNDs that are sent for attributes: GETATTR also follows most other
    /// operations.
    pub(super) fn getattrs_alone(&self) -> u64 {
        let sent = self.of("PUTFH") + self.of("PUTROOTFH");
        sent.saturating_sub(self.of("RENAME") + self.of("LINK") + self.other_than_getattr())
    }

    fn other_than_getattr(&self) -> u64 {
        let counts = self.0.iter().filter(|(name, _)| {
            *name != "GETATTR" && *name != "COMPOUND" && !PASSING.contains(&name.as_str())
        });
        counts.map(|(_, count)| count).sum()
    }
}
