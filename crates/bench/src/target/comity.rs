use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::{Target, free_address, nfs_target};
use crate::layout::Layout;
use crate::process::Server;

/// Starts a `comity` on some processors, with its exports file, state and log in `work`.
///
/// # Errors
/// It does not come up; its log is in the message.
pub fn start(program: &Path, layout: &Layout, work: &Path, processors: &[usize]) -> Result<Target> {
    let address = free_address()?;
    let exports = work.join("exports");
    let line = format!("{} 127.0.0.1(rw,insecure,no_root_squash)\n", layout.root().display());
    fs::write(&exports, line)?;
    let log = work.join("comity.log");
    let mut command = Command::new(program);
    command
        .arg("serve")
        .args(["--listen", "127.0.0.1", "--port", &address.port().to_string()])
        .arg("--exports")
        .arg(&exports)
        .arg("--state-dir")
        .arg(work.join("comity-state"))
        .stdout(File::create(&log)?)
        .stderr(File::options().append(true).open(&log)?);
    let server = Server::start(&mut command, processors)?;
    let target = nfs_target("comity", layout, [address; 2], vec![server]);
    target.with_context(|| {
        let said = fs::read_to_string(&log).unwrap_or_default();
        format!("comity does not come up: {}", said.trim())
    })
}
