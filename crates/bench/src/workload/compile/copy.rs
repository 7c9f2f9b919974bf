use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use anyhow::{Context, Result};

use crate::suite::Interrupt;

/// Copies a tree: directories, files with their modes, symbolic links. Other objects are skipped.
pub(super) fn tree(from: &Path, to: &Path, interrupt: &Interrupt) -> Result<()> {
    let failed = || format!("copy {} to {}", from.display(), to.display());
    fs::create_dir(to).with_context(failed)?;
    for entry in fs::read_dir(from).with_context(failed)? {
        interrupt.check()?;
        let entry = entry.with_context(failed)?;
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().with_context(failed)?;
        if kind.is_dir() {
            tree(&source, &copy, interrupt)?;
        } else if kind.is_symlink() {
            let said = fs::read_link(&source).with_context(failed)?;
            symlink(said, &copy).with_context(failed)?;
        } else if kind.is_file() {
            fs::copy(&source, &copy).map(drop).with_context(failed)?;
        }
    }
    Ok(())
}
