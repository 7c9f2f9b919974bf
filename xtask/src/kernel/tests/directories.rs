//! Clients of NFSv4.2 and NFSv3 list and change the same directories, which are delegated.

use anyhow::Result;

use crate::kernel::ground::Ground;
use crate::kernel::kernels::Kernel;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "directories-7.2",
    about: "delegations of directories to a client, and changes by others",
    // Attributes are valid for a second: without a delegation each listing calls the server.
    version: "4.2,actimeo=1",
    script: include_str!("directories.sh"),
    guests: 2,
    kernel: Some(Kernel::Linux7_2),
    exports: &["TOP 10.77.0.0/24(rw,sync,no_root_squash,dir_delegations=sole-writer)\n"],
    prepare,
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    ground.give(&[("directories.py", include_str!("directories.py"))])?;
    ground.give(super::STAGE)
}
