use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The variable that is set when this program runs in its own namespaces.
const INSIDE: &str = "COMITY_BENCH_INSIDE";

/// Returns whether this program runs in namespaces of its own.
#[must_use]
pub fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Starts this program again, in place of itself, in network, mount and process namespaces of its
/// own: servers then need no ports of this machine and end when it ends. Does nothing if it is
/// inside already, and says no if this takes root and we are not.
///
/// # Errors
/// Root, but the system does not allow it.
pub fn enter() -> Result<bool> {
    if is_inside() {
        return prepare().map(|()| true);
    }
    if !rustix::process::geteuid().is_root() || !Path::new("/usr/bin/unshare").exists() {
        return Ok(false);
    }
    let error = Command::new("/usr/bin/unshare")
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .arg(std::env::current_exe()?)
        .args(std::env::args_os().skip(1))
        .env(INSIDE, "1")
        .exec();
    Err(error).context("unshare")
}

fn prepare() -> Result<()> {
    run("ip", &["link", "set", "lo", "up"])?;
    for folder in ["/run", "/var/lib/nfs"].iter().filter(|folder| Path::new(folder).exists()) {
        run("mount", &["-t", "tmpfs", "tmpfs", folder])?;
    }
    Ok(())
}

fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let status = Command::new(program).args(arguments).status();
    let status = status.with_context(|| program.to_owned())?;
    ensure!(status.success(), "{program} {}: {status}", arguments.join(" "));
    Ok(())
}
