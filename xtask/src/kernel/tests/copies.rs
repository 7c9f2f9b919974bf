//! Copies that the server makes: long ones that continue after their reply, interrupted ones, and
//! clones.

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "copies",
    about: "copies that the server makes: long, interrupted, by sharing blocks",
    script: include_str!("copies.sh"),
    version: "4.2",
    prepare,
    verify,
    ..Test::EMPTY
};

/// The number of checks in `copies.py`.
const CHECKS: usize = 5;

fn prepare(ground: &Ground) -> Result<()> {
    ground.give(&[("copies.py", include_str!("copies.py"))])
}

/// Compares the copies that the guest made on the disk.
fn verify(ground: &Ground) -> Result<()> {
    let passed = ground.written("passed")?.lines().count();
    ensure!(passed == CHECKS, "only {passed} checks ran");
    let read = |name: &str| fs::read(ground.export().join(name)).with_context(|| name.to_owned());
    let source = read("source")?;
    for copy in ["target", "by-cp"] {
        ensure!(read(copy)? == source, "{copy} differs");
    }
    Ok(())
}
