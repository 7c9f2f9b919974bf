//! Two clients work in the same folders at the same time.

use std::fs;

use anyhow::{Result, ensure};

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "two",
    about: "two clients: close-to-open, concurrent creation, races of mkdir, link and rename",
    script: include_str!("two.sh"),
    guests: 2,
    prepare,
    verify,
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    let two = ("two.py", include_str!("two.py"));
    ground.give(&[two, ("meeting.py", super::MEETING), ("retries.py", super::RETRIES)])
}

/// Checks that the disk has the result of both clients together.
fn verify(ground: &Ground) -> Result<()> {
    let count = |folder: &str| fs::read_dir(ground.export().join(folder)).map(Iterator::count);
    let expected = [("creates", 600), ("exclusive", 100), ("folders", 60), ("tokens", 100)];
    for (folder, entries) in expected {
        let found = count(folder)?;
        ensure!(found == entries, "{folder} holds {found} entries, not {entries}");
    }
    let text = fs::read_to_string(ground.export().join("counter"))?;
    ensure!(text == "200", "the counter that both have raised stands at {text}, not 200");
    Ok(())
}
