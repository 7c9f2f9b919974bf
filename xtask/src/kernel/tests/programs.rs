//! Programs change delegated directories on the server, whose kernel makes them wait. The server
//! runs in a guest: it takes Linux 6.19.

use anyhow::Result;

use crate::kernel::ground::Ground;
use crate::kernel::kernels::Kernel;

use super::Test;

pub(super) const TEST: Test = Test {
    name: "programs-7.2",
    about: "programs on the server change directories that are delegated to clients",
    version: "4.2",
    script: include_str!("programs.sh"),
    guests: 3,
    kernel: Some(Kernel::Linux7_2),
    // The server of the test is in the first guest.
    takes_tls: false,
    prepare,
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    ground.give(&[("programs.py", include_str!("programs.py"))])?;
    ground.give(super::STAGE)
}
