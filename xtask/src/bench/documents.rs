//! The results of `comity bench` that are checked in as docs/bench.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::tools::cargo;

/// A run: its folder, workloads, targets, rounds and minutes.
struct Document {
    folder: &'static str,
    workloads: &'static str,
    targets: &'static [&'static str],
    rounds: &'static str,
    minutes: u32,
}

/// All runs. They take 24 minutes at most, and up to 9 minutes of pauses.
const DOCUMENTS: &[Document] = &[
    Document {
        folder: "local",
        workloads: "nfsstone,lsr,postmark,grep,compile,andrew,badros,bonnie,locks",
        targets: &["ext4", "tmpfs"],
        rounds: "5",
        minutes: 6,
    },
    Document {
        folder: "servers",
        workloads: "nfsstone,lsr,postmark,grep,badros,bonnie,rpc",
        targets: &["peer:ganesha", "peer:comity", "peer:memory"],
        rounds: "5",
        minutes: 7,
    },
    Document {
        folder: "versions",
        workloads: "nfsstone,lsr,postmark,locks,rpc",
        targets: &["peer:ganesha?vers=4.1", "peer:comity?vers=4.1", "peer:comity?vers=3"],
        rounds: "5",
        minutes: 6,
    },
    Document {
        folder: "selfscale",
        workloads: "selfscale",
        targets: &["ext4", "tmpfs"],
        rounds: "1",
        minutes: 5,
    },
];

/// Results above this many bytes are compressed.
const PLAIN_BYTES_MAX: u64 = 256 << 10;

/// Repeats the documented runs, or those of `only` if any are named, and replaces their results;
/// `quick` runs take a third of the time.
///
/// If something cannot be built or run; the results of earlier runs are in place.
/// Something cannot be built or run; the runs before it are in place.
pub(super) fn take(root: &Path, only: &[String], quick: bool) -> Result<()> {
    let unknown = only.iter().find(|name| DOCUMENTS.iter().all(|each| each.folder != **name));
    ensure!(unknown.is_none(), "there is no run {}", unknown.cloned().unwrap_or_default());
    cargo(root, &["build", "--release", "--locked", "--package", "comity-cli"])?;
    let work = tempfile::tempdir_in(root.join("target"))?;
    let memory =
        tempfile::tempdir_in("/dev/shm").context("/dev/shm: the tmpfs that is measured")?;
    // Reports show targets by their names, which must contain no path of this machine.
    fs::create_dir(work.path().join("ext4"))?;
    symlink(memory.path(), work.path().join("tmpfs"))?;
    let chosen = |each: &&Document| only.is_empty() || only.iter().any(|name| name == each.folder);
    for document in DOCUMENTS.iter().filter(chosen) {
        let output = work.path().join(document.folder);
        calm_down();
        run(root, work.path(), (document, quick)).with_context(|| document.folder)?;
        pack(&output)?;
        put(&output, &root.join("docs/bench").join(document.folder))?;
    }
    Ok(())
}

/// Waits, for three minutes at most, until the load average of the last minute does not contain the
/// earlier run: reports warn of a busy machine by it.
fn calm_down() {
    let average = || fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let is_busy = || average().split(' ').next().and_then(|load| load.parse().ok()) > Some(0.5);
    for _ in 0..36 {
        if !is_busy() {
            break;
        }
        sleep(Duration::from_secs(5));
    }
}

fn run(root: &Path, work: &Path, (document, quick): (&Document, bool)) -> Result<()> {
    let seconds = document.minutes * if quick { 20 } else { 60 };
    let minutes = format!("{:.2}", f64::from(seconds) / 60.0);
    let mut comity = Command::new(root.join("target/release/comity"));
    comity.args(["bench", "run", "all", "--quick", "--only", document.workloads]);
    comity.args(["--rounds", document.rounds, "--limit-minutes", &minutes]);
    comity.args(["--output", document.folder]).args(document.targets);
    // Peers make their files in the temporary folder.
    let status = comity.current_dir(work).env("TMPDIR", work).status().context("run comity")?;
    ensure!(status.success(), "comity bench run: {status}");
    Ok(())
}

/// Compresses a large result.
fn pack(output: &Path) -> Result<()> {
    let result = output.join("result.json");
    if fs::metadata(&result)?.len() > PLAIN_BYTES_MAX {
        let status = Command::new("gzip").arg("-9n").arg(&result).status().context("run gzip")?;
        ensure!(status.success(), "gzip: {status}");
    }
    Ok(())
}

/// Replaces a result.
fn put(new: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place)?;
    }
    let status = Command::new("cp").arg("-r").arg(new).arg(place).status().context("run cp")?;
    ensure!(status.success(), "cp to {}: {status}", place.display());
    println!("{}", place.display());
    Ok(())
}
