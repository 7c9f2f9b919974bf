//! A mount of `comity mount` with a cache of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::Options;

/// A mount, unmounted when this is dropped.
pub(super) struct SuiteMount {
    program: PathBuf,
    state: PathBuf,
    directory: PathBuf,
    is_mounted: bool,
}

impl SuiteMount {
    /// Mounts a source on the directory `name` of a folder.
    ///
    /// # Errors
    /// If it cannot be mounted.
    pub(super) fn new(
        program: &Path,
        (folder, name): (&Path, &str),
        source: &str,
        options: &Options,
    ) -> Result<Self> {
        let directory = folder.join(name);
        fs::create_dir_all(&directory)?;
        let state = folder.join(format!("{name}.state"));
        let (cache, log) = (folder.join(format!("{name}.cache")), format!("{name}.log"));
        let log = folder.join(log);
        let all = format!("dc_root={},log_file={}", cache.display(), log.display());
        let all = format!("{all},suid,dev,{}", options.mount_options);
        let mut command = Command::new(program);
        command.arg("mount").arg("--state-dir").arg(&state).args(["-o", &all, source]);
        // A program in the background would keep a pipe open, so that its output would not end.
        let status = command.arg(&directory).stdin(Stdio::null()).status();
        ensure!(status.context("start comity")?.success(), "cannot mount {source}");
        Ok(Self { program: program.to_path_buf(), state, directory, is_mounted: true })
    }

    /// The directory of the mount.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Unmounts; all written data must be sent before.
    ///
    /// # Errors
    /// If it cannot be unmounted.
    pub(super) fn end(mut self) -> Result<()> {
        self.is_mounted = false;
        let status = self.umount(&[])?;
        ensure!(status.success(), "cannot unmount {}", self.directory.display());
        Ok(())
    }

    fn umount(&self, options: &[&str]) -> Result<std::process::ExitStatus> {
        let mut command = Command::new(&self.program);
        command.arg("umount").arg("--state-dir").arg(&self.state).args(options);
        Ok(command.arg(&self.directory).status()?)
    }
}

impl Drop for SuiteMount {
    fn drop(&mut self) {
        if self.is_mounted {
            // An earlier step failed; the suite reports why.
            let _ = self.umount(&["--lazy"]);
        }
    }
}
