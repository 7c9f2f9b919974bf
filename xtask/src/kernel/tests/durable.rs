//! Data that fsync has acknowledged outlive a crash of the server.

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

/// Bytes of a record; `durable.py` uses the same value.
const RECORD_BYTES: usize = 4096;

fn prepare(ground: &Ground) -> Result<()> {
    Ok(fs::write(ground.input().join("durable.py"), include_str!("durable.py"))?)
}

/// Checks that every record and file exists whose fsync was acknowledged.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Folders in which 200 acknowledged records and their files are stored.
    fn ground(name: &str) -> Ground {
        let ground = Ground::new(&crate::root(), name).unwrap();
        let record = |number: usize| format!("{number:>8}").repeat(RECORD_BYTES / 8);
        let records: String = (0..200).map(record).collect();
        fs::write(ground.export().join("records"), records).unwrap();
        for number in (0..200).step_by(10) {
            let file = ground.export().join(format!("file-{number}"));
            fs::write(file, record(number)).unwrap();
        }
        let numbers: String = (0..200).map(|number| format!("{number}\n")).collect();
        fs::create_dir_all(ground.guest(1)).unwrap();
        fs::write(ground.guest(1).join("acknowledged"), numbers).unwrap();
        ground
    }

    #[test]
    fn acknowledged_changes_must_be_there() {
        let ground = ground("test-durable");
        verify(&ground).unwrap();
        let records = fs::read(ground.export().join("records")).unwrap();
        fs::write(ground.export().join("records"), &records[..199 * RECORD_BYTES]).unwrap();
        let error = verify(&ground).unwrap_err();
        assert!(error.to_string().contains("record 199"), "{error}");
        fs::write(ground.export().join("records"), &records).unwrap();
        fs::write(ground.export().join("file-190"), "").unwrap();
        assert!(verify(&ground).unwrap_err().to_string().contains("file-190"));
        ground.clear();
    }
}
