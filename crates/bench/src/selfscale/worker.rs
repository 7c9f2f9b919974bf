//! One process of a workload: its own files, and its requests.

use anyhow::Result;

use super::{Axis, Point};
use crate::rng::Rng;
use crate::suite::{Access, Driver, OpenFile};

/// Longest file; a larger working set takes several files.
const FILE_BYTES: u64 = 64 << 20;

/// Largest request; sizes are drawn around a mean that is far below.
const REQUEST_BYTES_MAX: f64 = (16 << 20) as f64;

/// Bytes of a write while files grow.
const GROW_BYTES: u64 = 1 << 20;

/// Mean of the positive part of a normal distribution with mean 1 and deviation 1. Sizes are
/// divided by it so that their mean is sizeMean.
const POSITIVE_MEAN: f64 = 1.287_6;

/// A process.
pub(super) struct Lane {
    /// The path with which the names of the files begin.
    stem: String,
    /// Bytes of all files together.
    length: u64,
    files: Vec<OpenFile>,
    /// The end of the previous request.
    cursor: u64,
    rng: Rng,
}

/// The parameters of the requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    /// Bytes of the process's share of the working set.
    pub(super) share: u64,
    size_mean: f64,
    read_frac: f64,
    seq_frac: f64,
}

impl Shape {
    /// The parameters of each process's requests in a workload.
    pub(super) fn of(at: &Point) -> Self {
        let share = (at.get(Axis::UniqueBytes) / at.get(Axis::ProcessNum)).max(1.0) as u64;
        let [size_mean, read_frac, seq_frac] =
            [Axis::SizeMean, Axis::ReadFrac, Axis::SeqFrac].map(|axis| at.get(axis));
        Self { share, size_mean, read_frac, seq_frac }
    }

    /// The size of a request in bytes: normally distributed, with a deviation equal to the mean
    /// (coefficient of variation 1); sizes that are not positive are drawn again.
    fn size(&self, rng: &mut Rng) -> u64 {
        loop {
            let size = (self.size_mean / POSITIVE_MEAN * (1.0 + rng.normal())).round();
            if size >= 1.0 {
                return size.min(REQUEST_BYTES_MAX) as u64;
            }
        }
    }
}

impl Lane {
    /// A process without files.
    pub(super) fn new(stem: String, rng: Rng) -> Self {
        Self { stem, length: 0, files: Vec::new(), cursor: 0, rng }
    }

    /// Extends the files to the share of the process, on stable storage.
    pub(super) fn grow(&mut self, driver: &mut Driver, share: u64) -> Result<()> {
        while self.length < share {
            let (number, within) = (self.length / FILE_BYTES, self.length % FILE_BYTES);
            let path = self.path(number);
            let file = match within {
                0 => driver.create(&path)?,
                _ => driver.open(&path, Access::Write)?,
            };
            let end = (share - number * FILE_BYTES).min(FILE_BYTES);
            let mut at = within;
            while at < end {
                let length = GROW_BYTES.min(end - at);
                driver.write(&file, at, length as usize)?;
                at += length;
            }
            driver.sync(&file)?;
            driver.close(file)?;
            self.length = number * FILE_BYTES + end;
        }
        Ok(())
    }

    /// Opens the files of the share.
    pub(super) fn open(&mut self, driver: &mut Driver, share: u64) -> Result<()> {
        for number in 0..share.div_ceil(FILE_BYTES) {
            self.files.push(driver.open(&self.path(number), Access::Write)?);
        }
        Ok(())
    }

    /// Closes the files.
    pub(super) fn close(&mut self, driver: &mut Driver) -> Result<()> {
        self.files.drain(..).try_for_each(|file| driver.close(file))
    }

    /// Makes a request. A request is shortened at the end of a file.
    pub(super) fn request(&mut self, driver: &mut Driver, shape: &Shape) -> Result<()> {
        let size = shape.size(&mut self.rng);
        let is_sequential = self.rng.unit() < shape.seq_frac;
        let start = match is_sequential && self.cursor < shape.share {
            true => self.cursor,
            false if is_sequential => 0,
            false => self.rng.below((shape.share + 1).saturating_sub(size).max(1)),
        };
        let (number, offset) = (start / FILE_BYTES, start % FILE_BYTES);
        let length = size.min(shape.share - start).min(FILE_BYTES - offset);
        self.cursor = start + length;
        let file = &self.files[number as usize];
        match self.rng.unit() < shape.read_frac {
            true => driver.read(file, offset, length as usize),
            false => driver.write(file, offset, length as usize),
        }
    }

    fn path(&self, number: u64) -> String {
        format!("{}-{number}", self.stem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_mean_that_was_asked_for() {
        let shape = Shape::of(&Point::new([1e6, 10_000.0, 0.5, 0.5, 1.0]));
        let mut rng = Rng::new(4);
        let sizes: Vec<f64> = (0..100_000).map(|_| shape.size(&mut rng) as f64).collect();
        let mean = crate::statistics::mean(&sizes).unwrap();
        assert!((mean / 10_000.0 - 1.0).abs() < 0.01, "{mean}");
        assert!(sizes.iter().all(|size| *size >= 1.0));
    }

    #[test]
    fn each_process_has_its_share() {
        assert_eq!(Shape::of(&Point::new([1e6, 1e4, 0.5, 0.5, 4.0])).share, 250_000);
    }
}
