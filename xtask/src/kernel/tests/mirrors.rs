//! Mirrored files: the guest writes to two plain servers of NFSv3 by a flexible files layout. One
//! of them is killed, and the guest goes on with the other, until files are copied back.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::Test;
use super::placement::calls;
use crate::kernel::data_servers::{DataServerKind, data};
use crate::kernel::ground::Ground;

pub(super) const TEST: Test = Test {
    name: "mirrors",
    about: "a flexible files layout over two plain servers of NFSv3, one of which is killed",
    script: include_str!("mirrors.sh"),
    version: "4.1",
    takes_tls: false,
    arguments: &["--no-register", "--metrics", "10.77.0.1:9049", "--lease-seconds", "8"],
    data_servers: 2,
    data_server_kind: DataServerKind::Mirrors,
    verify,
    ..Test::EMPTY
};

/// The same where one of the servers is nfs-ganesha.
pub(super) const GANESHA: Test = Test {
    name: "mirrors-ganesha",
    about: "the same, where the server that is killed is nfs-ganesha",
    version: "4.2",
    data_server_kind: DataServerKind::GaneshaMirrors,
    ..TEST
};

/// Checks that the bytes are on both data servers at the end, and that the guest has written and
/// read them there.
fn verify(ground: &Ground) -> Result<()> {
    let folder = ground.folder().join("server");
    let read = |name: &str| fs::read(ground.guest(1).join(name));
    for bytes in [read("longer")?, read("later")?] {
        for number in 0..2 {
            let stored = fs::read_dir(data(&folder, number))?;
            let mut stored = stored.map(|entry| fs::read(entry?.path()));
            let found = stored.any(|stored| stored.is_ok_and(|stored| stored == bytes));
            ensure!(found, "data server {number} lacks a file of {} bytes", bytes.len());
        }
    }
    let stats = fs::read_to_string(ground.guest(1).join("mountstats"))?;
    ensure!(stats.contains("pnfs=LAYOUT_FLEX_FILES"), "the guest has no flexible files layout");
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
    ensure!(broken(ground, "before")? == [0, 0], "mirrors are broken before a server is killed");
    let [a, b] = broken(ground, "after")?;
    ensure!(a == 0 && b > 0, "{a} mirrors on a and {b} on b are broken, which was killed");
    let resilvered = ground.written("resilvered")?;
    ensure!(resilvered.ends_with("2 files: all right\n"), "after a resilver: {resilvered}");
    ensure!(broken(ground, "end")? == [0, 0], "mirrors are broken after a resilver");
    Ok(())
}

/// The numbers of files with a broken mirror on each data server, as `comity placement status` has
/// said.
fn broken(ground: &Ground, name: &str) -> Result<[u64; 2]> {
    let said: Value = serde_json::from_str(&ground.written(name)?)?;
    let servers = &said["placements"][0]["data_servers"];
    let broken = |at: usize| servers[at]["broken_files"].as_u64().context("no number is said");
    Ok([broken(0)?, broken(1)?])
}
