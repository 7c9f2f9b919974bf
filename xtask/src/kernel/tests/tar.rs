//! 4,000 files are packed and unpacked by tar and compared bit by bit.

use anyhow::{Result, ensure};

use crate::kernel::ground::{Ground, fingerprint, output};
use crate::kernel::tree;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "tar",
    about: "tar of 4,000 files in and out: names, modes, times, links and bytes",
    script: include_str!("tar.sh"),
    prepare,
    verify,
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    let heap = ground.folder().join("heap");
    tree::heap(&heap, 4000)?;
    let [heap, archive] = [heap, ground.input().join("heap.tar")].map(|p| p.display().to_string());
    output("tar", &["-C", &heap, "--format=posix", "--sort=name", "-cf", &archive, "."])?;
    Ok(())
}

/// Checks that the disk has the files that were unpacked, and that the guest has read the same.
fn verify(ground: &Ground) -> Result<()> {
    let expected = fingerprint(&ground.folder().join("heap"))?;
    let stored = fingerprint(&ground.export().join("heap"))?;
    ensure!(stored == expected, "the disk holds something else than what was sent");
    let read = ground.written("fingerprint")?;
    ensure!(read.trim() == expected, "the guest has read something else than what it sent");
    Ok(())
}
