//! An export moves to another server and back while the guest has a file open and locked.

use std::fs;

use anyhow::{Result, ensure};

use super::Test;
use crate::kernel::ground::Ground;

pub(super) const TEST: Test = Test {
    name: "migrate",
    about: "an export that moves to another server and back, with an open and a lock",
    script: include_str!("migrate.sh"),
    version: "4.1",
    takes_tls: false,
    arguments: &["--no-register", "--no-local-locks"],
    has_other_server: true,
    prepare,
    verify,
    ..Test::EMPTY
};

/// The guest is a client of the other server before the export moves there.
pub(super) const BOTH: Test = Test {
    name: "migrate-both",
    about: "the same, by a client of both servers",
    script: include_str!("migrate-both.sh"),
    ..TEST
};

/// Two hosts lock over NFSv3, by the server that forwards their calls.
pub(super) const HOSTS: Test = Test {
    name: "migrate-hosts",
    about: "NFSv3 hosts keep their locks when an export moves, and then either server restarts",
    script: include_str!("migrate-hosts.sh"),
    guests: 2,
    takes_tls: false,
    arguments: &["--portmap", "--no-local-locks", "--lease-seconds", "8"],
    has_other_server: true,
    prepare: |ground| {
        ground.give(&[("migrate_hosts.py", include_str!("migrate_hosts.py"))])?;
        ground.give(super::STAGE)
    },
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    ground.give(&[("migrate.py", include_str!("migrate.py"))])?;
    ground.give(super::STAGE)
}

/// Checks that every line arrived once, in its order.
fn verify(ground: &Ground) -> Result<()> {
    let text = fs::read_to_string(ground.export().join("file"))?;
    ensure!(text == "at a\nat b\nat a again\n", "the file has {text:?}");
    Ok(())
}
