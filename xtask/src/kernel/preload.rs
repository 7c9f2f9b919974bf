//! A library that is preloaded into the guest's kernel, so that it runs on newer processors.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::ground::output;

/// Builds the library; see `ptrace.c`.
///
/// # Errors
/// If gcc cannot build it.
pub(super) fn build(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/kernel");
    fs::create_dir_all(&folder)?;
    let library = folder.join("ptrace.so");
    let process = std::process::id();
    let source = folder.join(format!("ptrace-{process}.c"));
    let made = folder.join(format!("ptrace-{process}.so"));
    fs::write(&source, include_str!("ptrace.c"))?;
    let [from, to] = [&source, &made].map(|path| path.display().to_string());
    output("gcc", &["-O2", "-shared", "-fPIC", "-o", &to, &from, "-ldl"])?;
    // The file is renamed in one step, because several runs may share it.
    fs::rename(&made, &library)?;
    fs::remove_file(&source)?;
    Ok(library)
}
