//! Parallel NFS: a file in stripes on two data servers, which the guest reads and writes directly.
//! Another guest dies after it has written a file, which everybody sees whole after its lease.

use std::fs;
use std::path::Path;

use anyhow::{Result, ensure};

use super::Test;
use crate::kernel::data_servers::{UNIT_BYTES, data};
use crate::kernel::ground::Ground;

pub(super) const TEST: Test = Test {
    name: "placement",
    about: "a files layout over two data servers, the same file by NFSv3, a client that dies",
    script: include_str!("placement.sh"),
    version: "4.1",
    takes_tls: false,
    arguments: &["--no-register", "--metrics", "10.77.0.1:9049", "--lease-seconds", "8"],
    guests: 2,
    data_servers: 2,
    prepare: |ground| ground.give(&[("placement_death.py", include_str!("placement_death.py"))]),
    verify,
    ..Test::EMPTY
};

/// Checks that the bytes are on the data servers and that none passed through the metadata server.
fn verify(ground: &Ground) -> Result<()> {
    let folder = ground.folder().join("server");
    let whole = fs::read(ground.guest(1).join("whole"))?;
    let halves = [only_file(&data(&folder, 0))?, only_file(&data(&folder, 1))?];
    for (at, unit) in whole.chunks(UNIT_BYTES).enumerate() {
        let begin = at * UNIT_BYTES;
        let stored = halves[at % 2].get(begin..begin + unit.len());
        ensure!(stored == Some(unit), "stripe unit {at} is not on data server {}", at % 2);
    }
    let own = fs::read(ground.export().join("whole"))?;
    ensure!(own.len() == whole.len(), "the metadata server has a size of {}", own.len());
    ensure!(own.iter().all(|byte| *byte == 0), "the metadata server has bytes of the file");
    let stats = fs::read_to_string(ground.guest(1).join("mountstats"))?;
    ensure!(stats.contains("pnfs=LAYOUT_NFSV4_1_FILES"), "the guest has no files layout");
    let metrics = fs::read_to_string(ground.guest(1).join("metrics"))?;
    for (operation, is_used) in [
        ("READ", false),
        ("READ_PLUS", false),
        ("WRITE", false),
        ("LAYOUTGET", true),
        ("GETDEVICEINFO", true),
        ("LAYOUTCOMMIT", true),
    ] {
        let calls = calls(&metrics, operation);
        ensure!((calls > 0) == is_used, "the metadata server did {operation} {calls} times");
    }
    Ok(())
}

fn only_file(folder: &Path) -> Result<Vec<u8>> {
    let files: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    ensure!(files.len() == 1, "{} has {} files", folder.display(), files.len());
    Ok(fs::read(files[0].path())?)
}

/// The number of times that a server has done an operation, from its metrics page.
pub(super) fn calls(metrics: &str, operation: &str) -> u64 {
    let name = format!("comity_nfs4_operations_total{{operation=\"{operation}\"");
    let lines = metrics.lines().filter(|line| line.starts_with(&name));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
}
