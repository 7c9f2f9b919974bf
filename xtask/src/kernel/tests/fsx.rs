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

/// Besides what it does by default: close and open, drop what is mapped, fsync.
const CONFIGURATION: &str = "flen = 262144\n[opsize]\nmax = 65536\n[weights]\nclose_open = 1.0\n\
    invalidate = 0.3\nmapread = 1.0\nmapwrite = 1.0\nread = 1.0\nwrite = 1.0\ntruncate = 1.0\n\
    fsync = 0.1\nfdatasync = 0.1\nposix_fallocate = 0.0\n";

/// The guest's last view of the file is what the disk holds.
fn verify(ground: &Ground) -> Result<()> {
    let stored = fs::read(ground.export().join("file"))?;
    let seen = fs::read(ground.guest(1).join("file"))?;
    ensure!(stored == seen, "the disk holds something else than what the guest has read last");
    Ok(())
}
