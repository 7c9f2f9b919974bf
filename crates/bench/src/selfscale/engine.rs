//! The self-scaling benchmark on files: each process has a file of its own.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::worker::{Lane, Shape};
use super::{Axis, Measured, Point, Recorded, Stage, Subject};
use crate::suite::{Context, Driver};

/// The time limits of a measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Time in operations after which a process ends its part of a batch.
    pub(super) batch: Duration,
    /// Longest warm-up.
    pub(super) warm_up: Duration,
}

/// The files of a target that are measured. Processes are threads, each with its own open file, or
/// its own connection if the target is reached by protocol.
pub(super) struct Engine<'a, 'b> {
    context: &'a mut Context<'b>,
    times: Times,
    /// About how many workloads will be measured, for the progress.
    expected: usize,
    done: usize,
    lanes: Vec<Lane>,
    drivers: Vec<Driver>,
    shape: Option<Shape>,
    /// The time at which the workload was begun, and its time budget if there is a limit.
    turn: (Instant, Option<Duration>),
}

/// Number of workloads for which some time is always reserved, as exploring may take longer than
/// expected.
const EXPECTED_MIN: usize = 10;

impl<'a, 'b> Engine<'a, 'b> {
    pub(super) fn new(context: &'a mut Context<'b>, times: Times, expected: usize) -> Self {
        let (lanes, drivers) = (Vec::new(), Vec::new());
        let turn = (Instant::now(), None);
        Self { context, times, expected, done: 0, lanes, drivers, shape: None, turn }
    }

    /// Closes all open files.
    pub(super) fn rest(&mut self) -> Result<()> {
        self.shape = None;
        for (lane, mut driver) in self.lanes.iter_mut().zip(self.drivers.drain(..)) {
            lane.close(&mut driver)?;
        }
        Ok(())
    }

    /// Lets all processes of the workload work at the same time; returns the bytes and the longest
    /// time.
    fn together(
        &mut self,
        work: impl Fn(&mut Lane, &mut Driver) -> Result<()> + Sync,
    ) -> Result<(u64, Duration)> {
        let lanes: Vec<_> = self.lanes.iter_mut().map(std::sync::Mutex::new).collect();
        let tally = self.context.parallel(&mut self.drivers, |number, driver| {
            let mut lane = lanes[number].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            work(&mut lane, driver)
        })?;
        Ok((tally.bytes_read + tally.bytes_written, tally.spent))
    }

    /// Makes as many processes with drivers as a workload has.
    fn assemble(&mut self, processes: usize) -> Result<()> {
        while self.lanes.len() < processes {
            let number = self.lanes.len();
            let stem = self.context.path(&format!("process-{number}"));
            self.lanes.push(Lane::new(stem, self.context.rng(number as u64)));
        }
        while self.drivers.len() < processes {
            self.drivers.push(self.context.driver()?);
        }
        Ok(())
    }

    /// A warm-up: as many bytes as the working set has, or as many as there is time for.
    fn warm_up(&mut self, shape: Shape) -> Result<()> {
        // If time is limited, half of it is for batches.
        let most = self.turn.1.map_or(self.times.warm_up, |time| self.times.warm_up.min(time / 2));
        self.together(|lane, driver| {
            let moved = |driver: &Driver| driver.tally().bytes_read + driver.tally().bytes_written;
            while moved(driver) < shape.share && driver.tally().spent < most {
                lane.request(driver, &shape)?;
            }
            Ok(())
        })?;
        Ok(())
    }
}

impl Subject for Engine<'_, '_> {
    fn prepare(&mut self, at: &Point) -> Result<()> {
        // No file may be open while caches are reset: a client's mount would be busy.
        self.rest()?;
        let expected = self.expected.saturating_sub(self.done).max(EXPECTED_MIN) as u32;
        self.turn = (Instant::now(), self.context.time_left().map(|left| left / expected));
        let (processes, shape) = (at.get(Axis::ProcessNum) as usize, Shape::of(at));
        self.assemble(processes)?;
        self.together(|lane, driver| lane.grow(driver, shape.share))?;
        self.drivers.clear();
        if !self.context.reset_caches()? {
            let how = "give --reset, --agent or --drop-caches";
            self.context.note(format!("caches were not emptied between workloads: {how}"));
        }
        self.assemble(processes)?;
        self.together(|lane, driver| lane.open(driver, shape.share))?;
        self.shape = Some(shape);
        self.warm_up(shape)
    }

    fn batch(&mut self) -> Result<f64> {
        let Some(shape) = self.shape else { return Ok(0.0) };
        let enough = self.times.batch;
        let (bytes, spent) = self.together(|lane, driver| {
            while driver.tally().spent < enough {
                lane.request(driver, &shape)?;
            }
            Ok(())
        })?;
        Ok(bytes as f64 / spent.as_secs_f64())
    }

    fn is_due(&self) -> bool {
        self.turn.1.is_some_and(|time| self.turn.0.elapsed() >= time)
    }

    fn is_late(&self) -> bool {
        self.context.time_left().is_some_and(|left| left.is_zero())
    }

    fn keep(&mut self, stage: Stage, at: &Point, measured: &Measured) {
        for sample in Recorded::samples(stage, at, measured) {
            self.context.keep(sample);
        }
        self.done += 1;
        self.context.advance((self.done as f64 / self.expected as f64).min(0.99));
    }
}
