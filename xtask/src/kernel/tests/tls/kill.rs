//! The server is killed and started again: clients make new handshakes and reclaim their locks.

use anyhow::{Result, ensure};

use crate::kernel::ground::Ground;
use crate::kernel::tests::Test;

pub(super) const TEST: Test = Test {
    name: "tls-kill-6.12",
    about: "writes and locks over TLS, the server killed: all is reclaimed by new handshakes",
    script: include_str!("kill.sh"),
    kills: KILLS,
    prepare: |ground| {
        ground.give(&[("kill.py", include_str!("kill.py"))])?;
        super::equip(ground, 1)
    },
    verify,
    ..super::BOTH_SIDED
};

/// The number of times that the server is killed; `kill.py` uses the same value.
const KILLS: u32 = 3;

/// Checks that every record is stored, and that each connection made a handshake.
fn verify(ground: &Ground) -> Result<()> {
    let records = std::fs::read_to_string(ground.export().join("records"))?;
    let wanted: String =
        (0..records.lines().count()).map(|number| format!("{number:7}\n")).collect();
    ensure!(records == wanted, "records are lost");
    ensure!(ground.written("acknowledged")?.trim() == records.lines().count().to_string());
    let handshakes = ground.written("tlshd.log")?.matches("was successful").count();
    ensure!(handshakes > KILLS as usize, "only {handshakes} handshakes");
    Ok(())
}
