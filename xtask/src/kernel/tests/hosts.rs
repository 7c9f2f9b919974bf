//! Three hosts that lock over NFSv3: the kernel's lock manager and status monitor with those of the
//! server.

use anyhow::Result;

use crate::kernel::ground::Ground;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "hosts",
    about: "NFSv3 with locks: NLM beside 4.1, the server killed, a client restarted (NSM)",
    script: include_str!("hosts.sh"),
    guests: 3,
    takes_tls: false,
    arguments: &["--portmap", "--lease-seconds", "8"],
    prepare,
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    ground.give(&[("hosts.py", include_str!("hosts.py"))])?;
    ground.give(super::STAGE)
}
