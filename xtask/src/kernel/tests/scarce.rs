//! A server with little memory recalls slots (CB_RECALL_SLOT) and delegations (CB_RECALL_ANY) from
//! a client, which returns them and continues.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "scarce-4.1",
    about: "slots and delegations are recalled from one of three clients, which uses many files",
    version: "4.1",
    script: include_str!("scarce.sh"),
    // Each client leaves half of the rest to the next, so that two never have three quarters.
    guests: 3,
    // `scarce.py` uses the same values. Linux first asks for 64 slots of 7,664 bytes each. The
    // three clients get 39, 19 and 10 or 9, which is more than three quarters of the memory for
    // replies.
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

/// The number of files that `scarce.py` writes, and of the 16-byte records in each.
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
