//! git: many small files, locks by exclusive creation, renames over existing files, packs read by
//! mmap.

use anyhow::{Result, ensure};

use crate::kernel::ground::{Ground, output};
use crate::kernel::tree;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "git",
    about: "git init, add, commit, branch, checkout, merge, gc, fsck",
    script: include_str!("git.sh"),
    seconds_max: 600,
    prepare: |ground| tree::c_program(&ground.input().join("tree"), tree::FOLDERS).map(|_| ()),
    verify,
    ..Test::EMPTY
};

/// Checks with git on this machine that the repository is complete and clean and has all commits.
fn verify(ground: &Ground) -> Result<()> {
    let repository = ground.export().join("repository").display().to_string();
    let git = |arguments: &[&str]| {
        let before = ["-c", "safe.directory=*", "-C", &repository];
        output("git", &[&before, arguments].concat())
    };
    git(&["fsck", "--full", "--strict"])?;
    let changed = git(&["status", "--porcelain"])?;
    ensure!(changed.is_empty(), "files differ from what was committed:\n{changed}");
    let commits = git(&["rev-list", "--count", "main"])?;
    ensure!(commits.trim() == "4", "{} commits, not 4", commits.trim());
    let input = ground.input().join("tree").display().to_string();
    let first = git(&["rev-list", "--max-parents=0", "main"])?;
    git(&["-c", "advice.detachedHead=false", "checkout", "-q", first.trim()])?;
    output("diff", &["-r", "-x", ".git", &input, &repository])?;
    Ok(())
}
