//! Every operation by system call, as root and as an ordinary user.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use anyhow::{Context, Result, ensure};

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "smoke",
    about: "every operation by system call, as root and as an ordinary user",
    script: include_str!("smoke.sh"),
    prepare,
    verify,
    ..Test::EMPTY
};

/// The number of checks in `smoke.py`, each of which two users run.
const CHECKS: usize = 17;

fn prepare(ground: &Ground) -> Result<()> {
    ground.give(&[("smoke.py", include_str!("smoke.py")), ("retries.py", super::RETRIES)])
}

/// Compares the files on the disk with those that the guest made.
fn verify(ground: &Ground) -> Result<()> {
    let passed = ground.written("passed")?;
    let repeated = ground.written("repeated")?;
    ensure!(passed.lines().count() == 2 * CHECKS, "only {} checks ran", passed.lines().count());
    for (user, id) in [("root", 0), ("user", 1000)] {
        let top = ground.export().join(user);
        let meta =
            |name: &str| fs::symlink_metadata(top.join(name)).with_context(|| name.to_owned());
        ensure!(meta("specials/fifo")?.file_type().is_fifo(), "{user}: fifo is none");
        ensure!(meta("specials/socket")?.file_type().is_socket(), "{user}: socket is none");
        ensure!(meta("links/symbolic")?.is_symlink(), "{user}: symbolic link is none");
        ensure!(meta("links/twin")?.nlink() == 2, "{user}: twin has not two names");
        let owned = meta("modes/file")?;
        ensure!(owned.uid() == id, "{user}: file belongs to {}", owned.uid());
        ensure!(owned.mode() & 0o7777 == 0o640, "{user}: mode {:o}", owned.mode());
        ensure!(meta("sizes/far")?.size() == (5 << 32) + 3, "{user}: a 64-bit size is lost");
        let left = fs::read_dir(top.join("silly"))?.count();
        // If the server renamed the file before it was killed, the client cannot know it.
        let excused = repeated.lines().filter(|line| line.contains("silly")).count();
        ensure!(left <= excused, "{user}: {left} files left of those removed while open");
    }
    let device = fs::symlink_metadata(ground.export().join("root/specials/null"))?;
    ensure!(device.file_type().is_char_device(), "the device is none");
    ensure!(device.rdev() == rustix::fs::makedev(1, 3), "the device has number {}", device.rdev());
    Ok(())
}
