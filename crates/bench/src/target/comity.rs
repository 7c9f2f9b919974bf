use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Target, free_address, nfs_target};
use crate::layout::Layout;
use crate::process::Server;

/// Which comity, and how it runs.
#[derive(Debug, Clone)]
pub struct Comity {
    /// The program.
    pub program: PathBuf,
    /// The processors it may use.
    pub processors: Vec<usize>,
    /// Whether changes of names are answered before they are on stable storage.
    pub is_async: bool,
}

/// Starts a comity with its exports file, state and log in a new folder in `work`.
///
/// # Errors
/// It does not come up; its log is in the message.
pub fn start(comity: &Comity, layout: &Layout, work: &Path) -> Result<Target> {
    let work = tempfile::Builder::new().prefix("comity-").tempdir_in(work)?.keep();
    let address = free_address()?;
    let exports = work.join("exports");
    let when = if comity.is_async { "async" } else { "sync" };
    let root = layout.root().display();
    let line = format!("{root} 127.0.0.1(rw,insecure,no_root_squash,{when})\n");
    fs::write(&exports, line)?;
    let log = work.join("comity.log");
    let mut command = Command::new(&comity.program);
    command
        .arg("serve")
        .args(["--listen", "127.0.0.1", "--port", &address.port().to_string()])
        .arg("--exports")
        .arg(&exports)
        .arg("--state-dir")
        .arg(work.join("comity-state"))
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?);
    let server = Server::start(&mut command, &comity.processors)?;
    let target = nfs_target("comity", layout, [address; 2], vec![server]);
    target.with_context(|| {
        let said = fs::read_to_string(&log).unwrap_or_default();
        format!("comity does not come up: {}", said.trim())
    })
}
