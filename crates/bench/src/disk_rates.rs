//! Measures the most that a disk carries: bytes that are read and written in sequence, and
//! operations at random places.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::direct_file::{self, AlignedBuffer, PAGE_BYTES, PIECE_BYTES};
use crate::rng::Rng;

/// The steps of a measurement: the file is made, written, read, and read at random places.
pub const STEPS: u64 = 4;

/// Bytes of the file that is read and written.
const FILE_BYTES: u64 = 1 << 30;
/// Threads that write or read in sequence, each in a part of the file.
const STREAMS: u64 = 4;
/// Threads that read at random places.
const READERS: u64 = 16;

/// The most that a disk was seen to carry in a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredRates {
    /// Bytes that were read in sequence.
    pub read_bytes: f64,
    /// Bytes that were written in sequence and are on the disk.
    pub written_bytes: f64,
    /// Reads of 4 KiB at random places.
    pub operations: f64,
}

/// Measures the disk of a folder, past the caches of the kernel, for `time` each way. A file of
/// 1 GiB is kept there meanwhile. `tell` is called before each of the [`STEPS`] begins.
///
/// # Errors
/// The folder takes no file, no direct access, or not that much data.
pub fn measure(folder: &Path, time: Duration, mut tell: impl FnMut()) -> Result<MeasuredRates> {
    tell();
    let file = direct_file::make(folder, FILE_BYTES)?;
    tell();
    // A disk that says that it is done may only have cached the data.
    let written = rate(STREAMS, time, streaming(&file, Stream::write), || file.sync_data());
    let written_bytes = written? * PIECE_BYTES as f64;
    tell();
    let read = rate(STREAMS, time, streaming(&file, Stream::read), || Ok(()));
    let read_bytes = read? * PIECE_BYTES as f64;
    tell();
    let reading = |seed| {
        let (file, mut buffer, mut rng) = (&file, AlignedBuffer::new(), Rng::new(seed));
        move || {
            let page = rng.below(FILE_BYTES / PAGE_BYTES as u64);
            file.read_exact_at(buffer.bytes(PAGE_BYTES), page * PAGE_BYTES as u64)
        }
    };
    let operations = rate(READERS, time, reading, || Ok(()));
    Ok(MeasuredRates { read_bytes, written_bytes, operations: operations? })
}

/// Returns the work of each thread: `step`, again and again, in a part of the file of its own.
fn streaming<'a>(
    file: &'a File,
    step: fn(&mut Stream<'a>) -> std::io::Result<()>,
) -> impl Fn(u64) -> Box<dyn FnMut() -> std::io::Result<()> + Send + 'a> {
    move |number| {
        let mut stream = Stream::new(file, number);
        Box::new(move || step(&mut stream))
    }
}

/// A part of the file that a thread goes through again and again.
struct Stream<'a> {
    file: &'a File,
    buffer: AlignedBuffer,
    begin: u64,
    at: u64,
}

impl<'a> Stream<'a> {
    fn new(file: &'a File, number: u64) -> Self {
        Self { file, buffer: AlignedBuffer::new(), begin: number * (FILE_BYTES / STREAMS), at: 0 }
    }

    /// Returns the place of the next piece.
    fn next(&mut self) -> u64 {
        let place = self.begin + self.at;
        self.at = (self.at + PIECE_BYTES as u64) % (FILE_BYTES / STREAMS);
        place
    }

    fn write(&mut self) -> std::io::Result<()> {
        let place = self.next();
        self.file.write_all_at(self.buffer.bytes(PIECE_BYTES), place)
    }

    fn read(&mut self) -> std::io::Result<()> {
        let place = self.next();
        self.file.read_exact_at(self.buffer.bytes(PIECE_BYTES), place)
    }
}

/// Runs threads that each repeat their work until `time` is over, and then `finish`. Returns how
/// often the work was done in a second.
fn rate<W>(
    threads: u64,
    time: Duration,
    work_of: impl Fn(u64) -> W,
    finish: impl FnOnce() -> std::io::Result<()>,
) -> Result<f64>
where
    W: FnMut() -> std::io::Result<()> + Send,
{
    let started = Instant::now();
    let done: std::io::Result<u64> = thread::scope(|scope| {
        let all: Vec<_> = (0..threads)
            .map(|number| {
                let work = work_of(number);
                scope.spawn(move || repeat(work, started, time))
            })
            .collect();
        all.into_iter().map(joined).sum()
    });
    let done = done.and_then(|done| finish().map(|()| done));
    let done = done.context("use the file for the measurement")?;
    Ok(done as f64 / started.elapsed().as_secs_f64())
}

fn repeat(
    mut work: impl FnMut() -> std::io::Result<()>,
    started: Instant,
    time: Duration,
) -> std::io::Result<u64> {
    let mut done = 0;
    while started.elapsed() < time {
        work()?;
        done += 1;
    }
    Ok(done)
}

fn joined(thread: ScopedJoinHandle<'_, std::io::Result<u64>>) -> std::io::Result<u64> {
    thread.join().unwrap_or_else(|_| Err(std::io::Error::other("a thread has ended")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_takes_a_time_is_done_as_often_as_it_fits() {
        let pause = || {
            thread::sleep(Duration::from_millis(5));
            Ok(())
        };
        let done = rate(4, Duration::from_millis(200), |_| pause, || Ok(())).unwrap();
        // Four threads do at most 200 pieces each in a second.
        assert!((100.0..=800.0).contains(&done), "{done}");
    }

    #[test]
    fn the_first_error_of_a_thread_ends_the_measurement() {
        let failing = |number: u64| {
            move || if number == 2 { Err(std::io::Error::other("worn out")) } else { Ok(()) }
        };
        let error = rate(4, Duration::from_millis(20), failing, || Ok(())).unwrap_err();
        assert!(format!("{error:#}").contains("worn out"), "{error:#}");
        let full = || Err(std::io::Error::other("disk full"));
        let error = rate(1, Duration::from_millis(20), |_| || Ok(()), full).unwrap_err();
        assert!(format!("{error:#}").contains("disk full"), "{error:#}");
    }

    #[test]
    fn a_stream_goes_round_in_its_part_of_the_file() {
        let file = tempfile::tempfile().unwrap();
        let mut stream = Stream::new(&file, 3);
        let (part, piece) = (FILE_BYTES / STREAMS, PIECE_BYTES as u64);
        let places: Vec<u64> = (0..=part / piece).map(|_| stream.next()).collect();
        assert_eq!((places[0], places[1]), (3 * part, 3 * part + piece));
        assert_eq!(places.last(), Some(&(3 * part)));
        assert!(places.iter().all(|place| place + piece <= FILE_BYTES));
    }
}
