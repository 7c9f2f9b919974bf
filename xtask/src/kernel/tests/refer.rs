//! A directory of the export is on another server: the kernel follows the referral.

use std::fs;

use anyhow::{Result, ensure};

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "refer",
    about: "an export of which another server, in the guest itself, has the files",
    version: "4.2",
    script: include_str!("refer.sh"),
    takes_tls: false,
    exports: &["TOP 10.77.0.0/24(rw,sync,no_root_squash)\n\
        TOP/moved 10.77.0.0/24(rw,sync,no_root_squash,refer=/tmp/second@10.77.0.11)\n"],
    prepare,
    verify,
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    Ok(fs::create_dir(ground.export().join("moved"))?)
}

/// Checks that nothing was written to the directory that the first server hides.
fn verify(ground: &Ground) -> Result<()> {
    let left = fs::read_dir(ground.export().join("moved"))?.count();
    ensure!(left == 0, "{left} files of the other server are on the first one");
    ensure!(ground.export().join("here").exists(), "the first server has lost its own file");
    Ok(())
}
