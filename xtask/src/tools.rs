//! Programs that these tools call: cargo itself, and tools from crates.io under `target/tools`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Runs cargo in the checkout, with its output on this terminal.
///
/// # Errors
/// If it fails.
pub(crate) fn cargo(root: &Path, arguments: &[&str]) -> Result<()> {
    let status = Command::new(program()).args(arguments).current_dir(root).status();
    let status = status.context("run cargo")?;
    ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    Ok(())
}

/// The cargo that runs this program.
pub(crate) fn program() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// Installs a tool from crates.io under `target/tools`, unless it is there; returns its path.
///
/// # Errors
/// If it cannot be installed.
pub(crate) fn install(root: &Path, name: &str, version: &str) -> Result<PathBuf> {
    let tools = root.join("target/tools");
    let tool = tools.join("bin").join(name);
    if !tool.exists() {
        let tools = tools.display().to_string();
        let what = ["install", "--quiet", "--locked", name, "--version", version, "--root", &tools];
        cargo(root, &what).with_context(|| format!("{name} {version} cannot be installed"))?;
    }
    Ok(tool)
}
