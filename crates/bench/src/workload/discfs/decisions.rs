use anyhow::Result;

use super::contenders::{by_key, labelled};
use crate::suite::{Access, ByKey, Context, Driver, Unit};

/// Bytes that are read of a file.
const READ_BYTES: usize = 512;

/// Reads of files drawn by chance, where the server keeps decisions about more and more objects.
pub(super) fn run(context: &mut Context<'_>) -> Result<()> {
    let parameters = context.parameters();
    let sizes = parameters.counts("decisions")?;
    let (files, reads) = (parameters.count("files")?, parameters.count("reads")?);
    let mut account = by_key(context, ByKey { chain: 0, decisions: 1_024 })?;
    make(context, &mut account, files)?;
    labelled(context, "decisions", &[("kept", "NK".into())], |context| {
        measure(context, &mut account, (files, reads))
    })?;
    for size in sizes {
        let mut key = by_key(context, ByKey { chain: 1, decisions: size as usize })?;
        labelled(context, "decisions", &[("kept", size.into())], |context| {
            measure(context, &mut key, (files, reads))
        })?;
    }
    Ok(())
}

fn make(context: &Context<'_>, driver: &mut Driver, files: u64) -> Result<()> {
    driver.make_directory(&context.path("decisions"))?;
    for number in 0..files {
        let file = driver.create(&path(context, number))?;
        driver.write(&file, 0, READ_BYTES)?;
        driver.close(file)?;
    }
    Ok(())
}

/// Reads each file once, so that the server's table of decisions is full, and then the files that
/// the seed chooses.
fn measure(
    context: &mut Context<'_>,
    driver: &mut Driver,
    (files, reads): (u64, u64),
) -> Result<()> {
    (0..files).try_for_each(|number| read(context, driver, number))?;
    driver.take_tally();
    let mut rng = context.rng(1);
    (0..reads).try_for_each(|_| read(context, driver, rng.below(files.max(1))))?;
    let seconds = driver.take_tally().spent.as_secs_f64();
    context.sample("reads", &[], reads as f64 / seconds, Unit::OperationsPerSecond);
    Ok(())
}

fn read(context: &Context<'_>, driver: &mut Driver, number: u64) -> Result<()> {
    let file = driver.open(&path(context, number), Access::Read)?;
    driver.read(&file, 0, READ_BYTES)?;
    driver.close(file)
}

fn path(context: &Context<'_>, number: u64) -> String {
    context.path(&format!("decisions/f{number}"))
}
