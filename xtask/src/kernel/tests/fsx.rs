//! Random reads, writes, truncations and mappings of one file, each verified (crate `fsx`).

use std::fs;

use anyhow::{Result, ensure};

use crate::kernel::data_servers::{DataServerKind, data};
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

/// A part of it on mirrors, which must be equal at the end.
pub(super) const MIRRORS: Test = Test {
    name: "fsx-mirrors",
    about: "10,000 operations by a flexible files layout on two mirrors",
    version: "4.2",
    script: concat!(
        "modprobe -d /run/kernel nfsv3\nmodprobe -d /run/kernel nfs_layout_flexfiles\n",
        include_str!("fsx.sh")
    ),
    takes_tls: false,
    data_servers: 2,
    data_server_kind: DataServerKind::Mirrors,
    prepare: |ground| prepare(ground, 10_000),
    verify: verify_mirrors,
    ..TEST
};

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

/// Checks that both mirrors have the content that the guest has read last.
fn verify_mirrors(ground: &Ground) -> Result<()> {
    let seen = fs::read(ground.guest(1).join("file"))?;
    for number in 0..2 {
        let folder = data(&ground.folder().join("server"), number);
        let files: Vec<_> = fs::read_dir(&folder)?.collect::<Result<_, _>>()?;
        ensure!(files.len() == 1, "{} has {} files", folder.display(), files.len());
        let mut stored = fs::read(files[0].path())?;
        ensure!(stored.len() <= seen.len(), "a mirror extends beyond the end of the file");
        // An extension of the file is no call to data servers.
        stored.resize(seen.len(), 0);
        ensure!(stored == seen, "mirror {number} holds something else than the guest has read");
    }
    Ok(())
}
