//! sqlite with a rollback journal: an order of fsync, create and unlink that must be kept.

use anyhow::{Result, ensure};

use crate::kernel::ground::{Ground, output};

use super::Test;

pub(super) const TEST: Test = Test {
    name: "sqlite",
    about: "transactions with a rollback journal, integrity_check, nothing committed is lost",
    script: include_str!("sqlite.sh"),
    prepare,
    verify,
    ..Test::EMPTY
};

fn prepare(ground: &Ground) -> Result<()> {
    Ok(std::fs::write(ground.input().join("transactions.py"), include_str!("sqlite.py"))?)
}

/// Checks that every acknowledged transaction is stored, with all its rows.
fn verify(ground: &Ground) -> Result<()> {
    let file = ground.export().join("data.db").display().to_string();
    let query = |text| output("sqlite3", &[&file, text]);
    let verdict = query("pragma integrity_check")?;
    ensure!(verdict == "ok\n", "integrity_check here: {verdict}");
    let acknowledged = ground.written("acknowledged")?;
    let whole = query(
        "select batch from rows where value = printf('%d-%d', batch, part) || hex(zeroblob(400)) \
         group by batch having count(*) = 20 order by batch",
    )?;
    ensure!(!acknowledged.is_empty(), "no transaction was acknowledged");
    let whole: Vec<&str> = whole.lines().collect();
    let lost: Vec<&str> = acknowledged.lines().filter(|batch| !whole.contains(batch)).collect();
    ensure!(lost.is_empty(), "acknowledged and not there: transactions {}", lost.join(", "));
    let rows = query("select count(*) from rows")?;
    ensure!(rows.trim() == (whole.len() * 20).to_string(), "{} rows in all", rows.trim());
    Ok(())
}
