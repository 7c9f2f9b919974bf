use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use comity_bench::fixture_tree::FixtureTree;
use comity_bench::process::StartedServer;
use comity_bench::targets::free_address;
use tempfile::TempDir;

use super::{ServerProcess, nfs_server, open_to_all};

/// The comity that is measured, and its files.
#[derive(Debug, Clone, clap::Args)]
pub struct ServerOptions {
    /// The comity that is measured.
    #[arg(long, default_value = "target/release/comity")]
    pub comity: PathBuf,
    /// The folder where the files are made; it must be on a real disk for the figures to mean
    /// anything.
    #[arg(long, default_value_os_t = std::env::temp_dir())]
    pub directory: PathBuf,
}

/// A tree of files, a folder for what servers need, and the comity that serves the tree. The files
/// are removed when this is dropped.
#[derive(Debug)]
pub struct TestBed {
    /// The tree.
    pub layout: FixtureTree,
    /// The folder for what servers need.
    pub work: PathBuf,
    comity: PathBuf,
    _folder: TempDir,
}

impl TestBed {
    /// Makes the tree.
    ///
    /// # Errors
    /// If the file system fails.
    pub fn make(subject: &ServerOptions) -> Result<Self> {
        let made = tempfile::Builder::new().prefix("comity-bench-").tempdir_in(&subject.directory);
        let folder = made.context("make a folder for the files")?;
        open_to_all(folder.path())?;
        let (tree, work) = (folder.path().join("tree"), folder.path().join("work"));
        [&tree, &work].into_iter().try_for_each(fs::create_dir)?;
        let layout = FixtureTree::build(&tree)?;
        Ok(Self { layout, work, comity: subject.comity.clone(), _folder: folder })
    }

    /// The program that is measured.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.comity
    }

    /// Starts a new comity on some processors, with its exports file, state and log in a new
    /// folder. With `is_async`, changes of names need not be on stable storage before the reply.
    ///
    /// # Errors
    /// If the server does not start. The message then contains its log.
    pub fn start_comity(&self, processors: &[usize], is_async: bool) -> Result<ServerProcess> {
        self.start_comity_with(processors, is_async, &[])
    }

    /// Starts a comity like [`Self::start_comity`], with more options.
    ///
    /// # Errors
    /// If the server does not start.
    pub fn start_comity_with(
        &self,
        processors: &[usize],
        is_async: bool,
        more: &[&str],
    ) -> Result<ServerProcess> {
        let when = if is_async { "async" } else { "sync" };
        self.start_comity_exporting(processors, when, more)
    }

    /// Starts a comity whose export has more options of exports(5).
    ///
    /// # Errors
    /// If the server does not start.
    pub fn start_comity_exporting(
        &self,
        processors: &[usize],
        export_options: &str,
        more: &[&str],
    ) -> Result<ServerProcess> {
        self.start_comity_prepared(processors, (export_options, more), |_| Ok(()))
    }

    /// Starts a comity for whose state folder, which does not exist yet, something is done before.
    ///
    /// # Errors
    /// If `prepare` fails, or the server does not start.
    pub fn start_comity_prepared(
        &self,
        processors: &[usize],
        (export_options, more): (&str, &[&str]),
        prepare: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<ServerProcess> {
        let work = tempfile::Builder::new().prefix("comity-").tempdir_in(&self.work)?.keep();
        let address = free_address()?;
        let exports = work.join("exports");
        let root = self.layout.root().display();
        let line = format!("{root} 127.0.0.1(rw,insecure,no_root_squash,{export_options})\n");
        fs::write(&exports, line)?;
        let (log, state) = (work.join("comity.log"), work.join("comity-state"));
        prepare(&state)?;
        let mut command = self.serving(&exports, &state, &log)?;
        command.args(["--listen", "127.0.0.1", "--port", &address.port().to_string()]);
        command.args(more);
        let server = StartedServer::start(&mut command, processors)?;
        let target = nfs_server("comity", &self.layout, address, server);
        target.with_context(|| {
            let said = fs::read_to_string(&log).unwrap_or_default();
            format!("comity does not start: {}", said.trim())
        })
    }

    /// Takes a server that was started otherwise and serves the tree.
    ///
    /// # Errors
    /// If it does not serve the tree.
    pub fn adopt(&self, address: SocketAddr, server: StartedServer) -> Result<ServerProcess> {
        nfs_server("comity", &self.layout, address, server)
    }

    fn serving(&self, exports: &Path, state: &Path, log: &Path) -> Result<Command> {
        let mut command = Command::new(&self.comity);
        command
            .arg("serve")
            .arg("--exports")
            .arg(exports)
            .arg("--state-dir")
            .arg(state)
            .stdout(File::create(log)?)
            .stderr(File::options().append(true).open(log)?);
        Ok(command)
    }
}
