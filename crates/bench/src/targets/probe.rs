use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::suite::{Access, Files, Target};

/// Writes that are timed.
const SYNCS: usize = 10;
/// Bytes of each.
const BYTES: usize = 4096;

/// Tries, in an empty directory of a target, what every workload relies on, and times `fsync`:
/// gives the median in seconds. Data that one worker has synced must be there for one that comes
/// later.
///
/// # Errors
/// The target keeps no promise, and which.
pub fn probe(target: &dyn Target, directory: &str) -> Result<f64> {
    let path = format!("{directory}/probe");
    let data: Vec<u8> = (0..BYTES * SYNCS).map(|number| (number / 7) as u8).collect();
    let mut writer = target.files()?;
    let seconds = write(writer.as_mut(), &path, &data).with_context(|| trouble(target))?;
    drop(writer);
    let mut reader = target.files()?;
    let found = read(reader.as_mut(), &path, data.len()).with_context(|| trouble(target))?;
    ensure!(
        found == data,
        "{}: what was written and synced is not there when it is opened again: fsync lies",
        target.name()
    );
    reader.remove(&path).with_context(|| trouble(target))?;
    ensure!(reader.lookup(&path).is_err(), "{}: a removed file is still there", target.name());
    Ok(seconds)
}

fn trouble(target: &dyn Target) -> String {
    format!("{} cannot be measured: the first write and read failed", target.name())
}

fn write(files: &mut dyn Files, path: &str, data: &[u8]) -> Result<f64> {
    let file = files.create(path)?;
    let mut times = Vec::new();
    for (number, part) in data.chunks(BYTES).enumerate() {
        let start = Instant::now();
        let taken = files.write(file, (number * BYTES) as u64, part)?;
        if taken != part.len() {
            bail!("{taken} of {} bytes were taken", part.len());
        }
        files.sync(file)?;
        times.push(start.elapsed().as_secs_f64());
    }
    files.close(file)?;
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn read(files: &mut dyn Files, path: &str, length: usize) -> Result<Vec<u8>> {
    let file = files.open(path, Access::Read)?;
    let mut data = vec![0; length + 1];
    let count = files.read(file, 0, &mut data)?;
    files.close(file)?;
    data.truncate(count);
    Ok(data)
}
