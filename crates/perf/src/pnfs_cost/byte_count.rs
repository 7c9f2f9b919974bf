use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Error, Result};

/// Time before a sample, in which windows and queues fill.
const WARM_UP: Duration = Duration::from_millis(500);
/// Time of a sample.
const SAMPLE: Duration = Duration::from_millis(2_000);

/// Bytes that several threads move until they are told that the sample is over.
#[derive(Debug, Default)]
pub(super) struct ByteCount {
    bytes: AtomicU64,
    is_over: AtomicBool,
    failure: Mutex<Option<Error>>,
}

impl ByteCount {
    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Notes the end of a thread.
    pub(super) fn end_if_failed(&self, done: Result<()>) {
        if let Err(error) = done {
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        }
    }

    /// Takes the sample: returns bytes a second.
    ///
    /// # Errors
    /// A thread has failed.
    pub(super) fn measure(&self) -> Result<f64> {
        sleep(WARM_UP);
        let (begun, before) = (Instant::now(), self.bytes.load(Ordering::Relaxed));
        sleep(SAMPLE);
        let moved = self.bytes.load(Ordering::Relaxed) - before;
        let rate = moved as f64 / begun.elapsed().as_secs_f64();
        self.is_over.store(true, Ordering::Relaxed);
        match self.failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            Some(error) => Err(error),
            None => Ok(rate),
        }
    }
}
