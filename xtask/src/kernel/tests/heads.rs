//! Heads of a cluster on hosts of their own: the address of an export goes to the head that takes
//! the export over, and Linux reclaims there.

use std::fs;

use anyhow::{Result, ensure};

use super::Test;
use crate::kernel::ground::Ground;

pub(super) const TEST: Test = Test {
    name: "heads",
    about: "a head of a cluster fails, or its export moves, and the address goes along",
    script: include_str!("heads.sh"),
    version: "4.2",
    takes_tls: false,
    idle_hosts: 3,
    prepare,
    verify,
    ..Test::EMPTY
};

/// The same for hosts of NFSv3, which reclaim when a head notifies them.
pub(super) const HOSTS: Test = Test {
    name: "heads-hosts",
    about: "NFSv3 hosts keep their locks when a head of a cluster fails",
    script: include_str!("heads_hosts.sh"),
    version: "3",
    guests: 2,
    prepare: |ground| {
        prepare(ground)?;
        ground.give(&[("heads_hosts.py", include_str!("heads_hosts.py"))])
    },
    verify: |_| Ok(()),
    ..TEST
};

fn prepare(ground: &Ground) -> Result<()> {
    for name in ["one", "two"] {
        fs::create_dir(ground.export().join(name))?;
    }
    ground.give(&[
        ("heads.py", include_str!("heads.py")),
        ("cluster.py", include_str!("cluster.py")),
        ("etcd.sh", include_str!("heads_etcd.sh")),
        ("head.sh", include_str!("heads_head.sh")),
    ])?;
    ground.give(super::STAGE)
}

/// Checks that each line arrived once, in its order.
fn verify(ground: &Ground) -> Result<()> {
    let wanted = [
        ("one", "at a\nat b\nat a again\nwhile the other moved\nmoved to b\nmoved to a\n"),
        ("two", "at b\nstill at b\nat a\nmoved to b\nmoved to a\n"),
    ];
    for (name, wanted) in wanted {
        let text = fs::read_to_string(ground.export().join(name).join("file"))?;
        ensure!(text == wanted, "{name}/file has {text:?}");
    }
    Ok(())
}
