//! Three clients of NFSv4 and processes on the server use the same files; the server is killed, and
//! a client is killed before it unmounts.
//!
//! Linux cannot deny others an open, so the conflicts here are about delegations and byte ranges.

use std::fs;

use anyhow::{Result, ensure};

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "clients-4.1",
    about: "delegations and locks of three clients; the server is killed, a client is lost",
    version: "4.1",
    script: include_str!("clients.sh"),
    guests: 3,
    // The lease is short because of the grace period and lost clients; `clients.py` uses the same
    // value.
    arguments: &["--no-register", "--lease-seconds", "8"],
    prepare,
    verify,
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    ground.give(&[("clients.py", include_str!("clients.py"))])?;
    ground.give(super::STAGE)
}

/// Checks that the last write, past the delegation of a lost client, is on the disk.
fn verify(ground: &Ground) -> Result<()> {
    let last = fs::read_to_string(ground.export().join("lost"))?;
    ensure!(last == "changed", "the last file holds `{last}`");
    Ok(())
}
