use anyhow::{Result, ensure};

use crate::suite::{
    Access, Context, Driver, Figure, OpenFile, Parameter, ParameterKind, Parameters, Unit, Workload,
};

/// Bonnie (Bray 1990): block write, read and rewrite of a file larger than memory.
pub(super) struct Bonnie;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "memory",
        about: "Bytes of memory that could cache the file; it is made twice as large",
        kind: ParameterKind::Bytes,
        paper: "256M",
        quick: "64M",
        modern: "8G",
    },
    Parameter {
        name: "block-size",
        about: "Bytes read and written at a time",
        kind: ParameterKind::Bytes,
        paper: "8K",
        quick: "64K",
        modern: "1M",
    },
];

impl Workload for Bonnie {
    fn name(&self) -> &'static str {
        "bonnie"
    }

    fn about(&self) -> &'static str {
        "block write, read and rewrite of a file twice the memory given"
    }

    fn origin(&self) -> &'static str {
        "Bray 1990; used in 2003 for DisCFS with a file of 512 MB, twice the memory of that \
         machine. A phase ends with an fsync if it wrote, inside the time. A machine of today has \
         more memory than 256 MB: without --memory or a reset of caches, reads measure a cache, \
         and the result says so."
    }

    fn parameters(&self) -> &'static [Parameter] {
        PARAMETERS
    }

    fn history(&self) -> &'static [Figure] {
        HISTORY
    }

    fn settings(&self, parameters: &Parameters) -> Result<()> {
        let bytes = parameters.bytes("memory")?.saturating_mul(2);
        let fits = (1..=bytes).contains(&parameters.bytes("block-size")?);
        ensure!(fits, "--block-size: from 1 to twice --memory");
        Ok(())
    }

    fn run(&self, context: &mut Context<'_>) -> Result<()> {
        let bytes = context.parameters().bytes("memory")?.saturating_mul(2);
        let block = context.parameters().bytes("block-size")?;
        let cold = context.reset_caches()?;
        if !cold && bytes < crate::suite::memory_available_bytes() {
            context
                .note("the file fits in this machine's memory, and no reset of caches was given");
        }
        let path = context.path("bonnie");
        let mut driver = context.driver()?;
        let mut file = driver.create(&path)?;
        for (number, (metric, phase)) in PHASES.iter().enumerate() {
            if *metric != "write" {
                driver.close(file)?;
                // A reset may unmount the target, so no file of it may be open.
                drop(driver);
                context.reset_caches()?;
                driver = context.driver()?;
                file = driver.open(&path, Access::Write)?;
            }
            driver.take_tally();
            for offset in (0..bytes).step_by(block as usize) {
                phase(&mut driver, &file, offset, block.min(bytes - offset) as usize)?;
            }
            if *metric != "read" {
                driver.sync(&file)?;
            }
            let seconds = driver.take_tally().spent.as_secs_f64();
            context.sample(metric, &[], bytes as f64 / seconds, Unit::BytesPerSecond);
            context.sample(&format!("{metric} time"), &[], seconds, Unit::Seconds);
            context.advance((number + 1) as f64 / PHASES.len() as f64);
        }
        driver.close(file)
    }
}

/// The work on a block.
pub(super) type Phase = fn(&mut Driver, &OpenFile, u64, usize) -> Result<()>;

/// The phases, by the names of their figures.
pub(super) const PHASES: &[(&str, Phase)] = &[
    ("write", |driver, file, offset, length| driver.write(file, offset, length)),
    ("read", |driver, file, offset, length| driver.read(file, offset, length)),
    ("rewrite", |driver, file, offset, length| {
        driver.read(file, offset, length)?;
        driver.write(file, offset, length)
    }),
];

const HISTORY: &[Figure] =
    &[bar("write time", 19.77), bar("read time", 88.39), bar("rewrite time", 18.17)];

const fn bar(metric: &'static str, value: f64) -> Figure {
    Figure {
        metric,
        at: &[],
        value,
        unit: Unit::Seconds,
        system: "OpenBSD 2.8, NFSv3 over 100 Mb/s Ethernet, 512 MB file",
        source: "Miltchev et al. 2003, bars of the figure as they survive",
    }
}
