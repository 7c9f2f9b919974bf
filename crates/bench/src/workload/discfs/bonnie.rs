use anyhow::{Result, ensure};

use super::contenders::Contenders;
use crate::suite::{Context, Driver, Unit};
use crate::workload::bonnie::PHASES;

/// Block write, read and rewrite of a large file.
pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let parameters = context.parameters();
    let (bytes, block) = (parameters.bytes("bonnie-bytes")?, parameters.bytes("block-size")?);
    ensure!((1..=bytes).contains(&block), "--block-size: from 1 to --bonnie-bytes");
    let mut contenders = Contenders::begin(context)?;
    contenders
        .take_turns(context, "bonnie", |context, driver| measure(context, driver, (bytes, block)))
}

fn measure(
    context: &mut Context<'_>,
    driver: &mut Driver,
    (bytes, block): (u64, u64),
) -> Result<()> {
    let path = context.path("bonnie");
    let file = driver.create(&path)?;
    for (metric, phase) in PHASES {
        driver.take_tally();
        for offset in (0..bytes).step_by(block as usize) {
            phase(driver, &file, offset, block.min(bytes - offset) as usize)?;
        }
        if *metric != "read" {
            driver.sync(&file)?;
        }
        let seconds = driver.take_tally().spent.as_secs_f64();
        context.sample(metric, &[], bytes as f64 / seconds, Unit::BytesPerSecond);
    }
    driver.close(file)?;
    driver.remove(&path)
}
