//! A real build: 400 sources, configured, compiled and linked in the mount.

use std::fs;

use anyhow::{Result, ensure};

use crate::kernel::ground::{Ground, output};
use crate::kernel::tree;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "build",
    about: "a C program of 400 sources, configured and built with make in the mount",
    script: include_str!("build.sh"),
    seconds_max: 600,
    prepare,
    verify,
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    let expected = tree::c_program(&ground.input().join("tree"))?;
    Ok(fs::write(ground.folder().join("expected"), expected)?)
}

/// Checks that the program also runs on this machine, and that every object file exists.
fn verify(ground: &Ground) -> Result<()> {
    let expected = fs::read_to_string(ground.folder().join("expected"))?;
    ensure!(ground.written("printed")? == expected, "the program printed the wrong sum there");
    let tree = ground.export().join("tree");
    let printed = output(&tree.join("program").display().to_string(), &[])?;
    ensure!(printed == expected, "the program prints {printed} here, not {expected}");
    let tree = tree.display().to_string();
    let objects = output("find", &[&tree, "-name", "*.o", "-size", "+0"])?.lines().count();
    ensure!(objects == 401, "{objects} object files on the disk, not 401");
    Ok(())
}
