//! A real build: many sources, configured, compiled and linked in the mount.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use crate::kernel::ground::{Ground, output};
use crate::kernel::tree;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "build",
    about: "a C program of 400 sources, configured and built with make in the mount",
    script: include_str!("build.sh"),
    seconds_max: 600,
    prepare: |ground| prepare(ground, tree::FOLDERS),
    verify,
    ..Test::EMPTY
};

/// A quarter of it.
pub(super) const SHORT: Test = Test {
    name: "build-short",
    about: "the same with 100 sources",
    prepare: |ground| prepare(ground, tree::FOLDERS_FEW),
    ..TEST
};

fn prepare(ground: &Ground, folders: u32) -> Result<()> {
    let expected = tree::c_program(&ground.input().join("tree"), folders)?;
    Ok(fs::write(ground.folder().join("expected"), expected)?)
}

/// Checks that the program also runs on this machine, and that every object file exists.
fn verify(ground: &Ground) -> Result<()> {
    let expected = fs::read_to_string(ground.folder().join("expected"))?;
    ensure!(ground.written("printed")? == expected, "the program printed the wrong sum there");
    let tree = ground.export().join("tree");
    let printed = output(&tree.join("program").display().to_string(), &[])?;
    ensure!(printed == expected, "the program prints {printed} here, not {expected}");
    let sources = count(&ground.input().join("tree"), "[fm]*.c")?;
    let objects = count(&tree, "*.o")?;
    ensure!(objects == sources, "{objects} object files on the disk, not {sources}");
    Ok(())
}

/// Returns the number of files below `top` whose names match and which are not empty.
fn count(top: &Path, names: &str) -> Result<usize> {
    let top = top.display().to_string();
    Ok(output("find", &[&top, "-name", names, "-size", "+0"])?.lines().count())
}
