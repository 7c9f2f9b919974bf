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
    prepare: |ground| Ok(fs::write(ground.input().join("fsx.toml"), CONFIGURATION)?),
    verify,
    ..Test::EMPTY
};

/// The default operations and some that are less frequent because each waits for the disk: close
/// and open, invalidate the mapping, fsync, truncate and extend.
const CONFIGURATION: &str = "flen = 131072\n[opsize]\nmax = 16384\n[weights]\nread = 1.0\n\
    write = 1.0\nmapread = 1.0\nmapwrite = 1.0\ntruncate = 0.2\nclose_open = 0.1\n\
    invalidate = 0.05\nfsync = 0.02\nfdatasync = 0.02\nposix_fallocate = 0.0\n";

/// Checks that the disk has the content that the guest has read last.
fn verify(ground: &Ground) -> Result<()> {
    let stored = fs::read(ground.export().join("file"))?;
    let seen = fs::read(ground.guest(1).join("file"))?;
    ensure!(stored == seen, "the disk holds something else than what the guest has read last");
    Ok(())
}
