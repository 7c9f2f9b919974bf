//! Programs of this machine that workloads need.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// The C compiler: `$CC`, or `cc`.
///
/// # Errors
/// There is none; the message says what to do.
pub(super) fn c_compiler() -> Result<PathBuf> {
    let name = std::env::var_os("CC").unwrap_or_else(|| OsString::from("cc"));
    find(&name).with_context(|| {
        let name = name.to_string_lossy();
        format!("there is no C compiler `{name}`: install one (Debian: gcc), or name it in CC")
    })
}

/// A program that binds object files into a library.
///
/// # Errors
/// There is none.
pub(super) fn archiver() -> Result<PathBuf> {
    let found = find(&OsString::from("ar"));
    found.context("there is no `ar`: install it (Debian: binutils)")
}

fn find(name: &OsString) -> Option<PathBuf> {
    let direct = Path::new(name);
    if direct.components().count() > 1 {
        return direct.is_file().then(|| direct.to_path_buf());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Runs a program to its end; returns its output.
///
/// # Errors
/// The program cannot be started, or fails; the message contains its output.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let said = command.output().with_context(|| format!("run {program}"))?;
    let words = String::from_utf8_lossy(&said.stderr);
    ensure!(said.status.success(), "{program} failed ({}): {}", said.status, words.trim());
    Ok(String::from_utf8_lossy(&said.stdout).into_owned())
}

/// Runs a program that must succeed or fail as `expected`.
///
/// # Errors
/// The program ends otherwise, or by a signal.
pub(super) fn probe(command: &mut Command, expected: bool) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let said = command.output().with_context(|| format!("run {program}"))?;
    let Some(code) = said.status.code() else { bail!("{program} was ended: {}", said.status) };
    let words = String::from_utf8_lossy(&said.stderr);
    ensure!((code == 0) == expected, "{program} gave {code}: {}", words.trim());
    Ok(())
}
