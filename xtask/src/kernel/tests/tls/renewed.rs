//! The server gets another key while a client is working.

use anyhow::Result;

use crate::kernel::ground::Ground;
use crate::kernel::keys::{Keys, NewKey};
use crate::kernel::tests::Test;

pub(super) const TEST: Test = Test {
    name: "tls-renewed-6.12",
    about: "the server's key is renewed by `comity reload` while a client works",
    script: include_str!("renewed.sh"),
    prepare,
    verify: |ground| super::names_keys(ground, &["new"]),
    ..super::BOTH_SIDED
};

fn prepare(ground: &Ground) -> Result<()> {
    let keys = Keys::of(ground)?;
    keys.make(&NewKey::server("new"))?;
    super::equip(ground, 1)
}
