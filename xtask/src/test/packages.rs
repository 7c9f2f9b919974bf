//! Debian packages that steps need: they are installed if this runs as root, and listed otherwise.

use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use super::Task;
use super::command::run;
use super::verdict::Verdict;

/// Packages for the kernel client tests, the comparison, the instruction counts, and the tests of
/// btrfs, of Ceph, of reports and of clusters.
const PACKAGES: &[&str] = &[
    "acl",
    "attr",
    "btrfs-progs",
    "ceph-mds",
    "ceph-mon",
    "ceph-osd",
    "chromium",
    "e2fsprogs",
    "etcd-client",
    "etcd-server",
    "gcc",
    "git",
    "iproute2",
    "kmod",
    "libc6-dev",
    "libcephfs2",
    "make",
    "nfs-common",
    "nfs-ganesha",
    "nfs-ganesha-ceph",
    "nfs-ganesha-vfs",
    "python3",
    "rpcbind",
    "sqlite3",
    "strace",
    "tar",
    "user-mode-linux",
    "util-linux",
    "valgrind",
];

const PATIENCE: Duration = Duration::from_secs(900);

/// Installs missing packages. A package that cannot be installed is no failure: the steps that need
/// it are skipped.
///
/// # Errors
/// If an installed program cannot be started.
pub(super) fn step(task: &Task<'_>) -> Result<Verdict> {
    let (root, name) = (task.root, task.name);
    let Some(before) = missing() else {
        return Ok(Verdict::skipped("there is no dpkg; install the packages by hand"));
    };
    if before.is_empty() {
        return Ok(Verdict::passed());
    }
    if !rustix::process::geteuid().is_root() {
        let why = format!("not root, cannot install: {}", before.join(" "));
        return Ok(Verdict::skipped(why));
    }
    println!("test: {name:12} installing {}", before.join(" "));
    run(root, name, apt(&["update", "-q"]), PATIENCE)?;
    let install = ["install", "-q", "-y", "--no-install-recommends"];
    let done = run(root, name, apt(&[&install[..], &before[..]].concat()), PATIENCE)?;
    let left = missing().unwrap_or_default();
    if left.is_empty() {
        return Ok(Verdict::passed());
    }
    Ok(Verdict::skipped(format!("cannot be installed: {}; {}", left.join(" "), done.ending())))
}

fn apt(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

/// The packages that are not installed; `None` on a machine without dpkg.
fn missing() -> Option<Vec<&'static str>> {
    let format = "-f=${db:Status-Status} ${Package}\\n";
    let done = Command::new("dpkg-query").args(["-W", format]).args(PACKAGES).output().ok()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let installed: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("installed ")).collect();
    Some(PACKAGES.iter().copied().filter(|package| !installed.contains(package)).collect())
}
