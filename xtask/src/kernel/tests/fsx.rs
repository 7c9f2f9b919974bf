//! Random reads, writes, truncations and mappings of one file, each verified (crate `fsx`).

use std::fs;

use anyhow::{Result, ensure};

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "fsx",
    about: "100,000 random operations on one file, each verified",
    script: include_str!("fsx.sh"),
    seconds_max: 600,
    prepare: |ground| prepare(ground, 100_000),
    verify,
    ..Test::EMPTY
};

/// A part of it.
pub(super) const SHORT: Test = Test {
    about: "the same with 30,000 operations",
    prepare: |ground| prepare(ground, 30_000),
    ..TEST
};

/// The test whose server is killed: most of its time it waits for the server.
pub(super) const KILLED: Test =
    Test { prepare: |ground| prepare(ground, 40_000), ..TEST.killed("fsx-kill", 6) };

/// The default operations and some that are less frequent because each waits for the disk: close
/// and open, invalidate the mapping, fsync, truncate and extend.
const CONFIGURATION: &str = "flen = 131072\n[opsize]\nmax = 16384\n[weights]\nread = 1.0\n\
    write = 1.0\nmapread = 1.0\nmapwrite = 1.0\ntruncate = 0.2\nclose_open = 0.1\n\
    invalidate = 0.05\nfsync = 0.02\nfdatasync = 0.02\nposix_fallocate = 0.0\n";

fn prepare(ground: &Ground, operations: u32) -> Result<()> {
    ground.give(&[("fsx.toml", CONFIGURATION), ("operations", &operations.to_string())])
}

/// Checks that the disk has the content that the guest has read last.
fn verify(ground: &Ground) -> Result<()> {
    let stored = fs::read(ground.export().join("file"))?;
    let seen = fs::read(ground.guest(1).join("file"))?;
    ensure!(stored == seen, "the disk holds something else than what the guest has read last");
    Ok(())
}
