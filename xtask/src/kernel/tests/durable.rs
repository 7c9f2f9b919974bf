//! What fsync has acknowledged outlives the server's death.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result, ensure};

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "fsync-kill",
    about: "records fsync'ed and files renamed into place, the server killed again and again",
    script: include_str!("durable.sh"),
    kills: 6,
    prepare,
    verify,
    ..Test::EMPTY
};

/// Bytes of a record in `durable.py`.
const RECORD_BYTES: usize = 4096;

fn prepare(ground: &Ground) -> Result<()> {
    Ok(fs::write(ground.input().join("durable.py"), include_str!("durable.py"))?)
}

/// Every record and file that was written down as safe is there.
fn verify(ground: &Ground) -> Result<()> {
    let records = fs::read(ground.export().join("records"))?;
    let acknowledged = ground.written("acknowledged")?;
    let numbers: BTreeSet<&str> = acknowledged.lines().collect();
    ensure!(numbers.len() > 100, "only {} records were acknowledged", numbers.len());
    for number in numbers {
        let index: usize = number.parse()?;
        let stored = records.get(index * RECORD_BYTES..(index + 1) * RECORD_BYTES);
        let expected = format!("{number:>8}").repeat(RECORD_BYTES / 8);
        ensure!(
            stored == Some(expected.as_bytes()),
            "record {number} was acknowledged and is lost"
        );
        if index.is_multiple_of(10) {
            let name = format!("file-{number}");
            let text = fs::read_to_string(ground.export().join(&name)).context(name)?;
            ensure!(text == expected, "file-{number} was acknowledged and holds something else");
        }
    }
    Ok(())
}
