//! A server that may remember little asks a client for slots (CB_RECALL_SLOT) and delegations
//! (CB_RECALL_ANY); the client gives them back and works on.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "scarce-4.1",
    about: "slots and delegations are asked back from one of three, who works with many files",
    version: "4.1",
    script: include_str!("scarce.sh"),
    // Each leaves the next as much as it has: two alone never have three quarters.
    guests: 3,
    // `scarce.py` knows them. Linux asks for 64 slots of 7,664 bytes each at first. The three get
    // 39, 19 and 10 or 9, which is more than three quarters of what there is for replies.
    arguments: &[
        "--no-register",
        "--metrics",
        "10.77.0.1:9100",
        "--delegations-max",
        "16",
        "--reply-cache-bytes-max",
        "600000",
    ],
    prepare,
    verify,
    ..Test::EMPTY
};

/// Files that `scarce.py` writes, and records of 16 bytes in each of them.
const FILES: usize = 40;
const RECORDS: usize = 6;

fn prepare(ground: &Ground) -> Result<()> {
    ground.give(&[("scarce.py", include_str!("scarce.py"))])?;
    ground.give(super::STAGE)
}

/// Checks that all data the client has written are on the disk.
fn verify(ground: &Ground) -> Result<()> {
    for file in 0..FILES {
        let name = format!("work-{file}");
        let text = fs::read_to_string(ground.export().join(&name)).context(name.clone())?;
        let record = |at: usize| format!("{file:07} {at:07}\n");
        let whole: String = (0..RECORDS).map(record).collect();
        ensure!(text == whole, "{name} holds\n{text}");
    }
    Ok(())
}
