//! Statistics of a list of samples.
//!
//! Intervals are 95 % unless stated otherwise. Functions that use random numbers (the bootstrap)
//! take a seed, so that a report made twice is the same.

mod change;
mod interval;
mod noise;
mod ratio;
mod student;
mod summary;

pub use change::{Segment, segments};
pub use interval::{CONFIDENCE, Interval, bootstrap, mean_interval};
pub use noise::{NOISY_ABOVE, SAMPLES_MIN, Verdict};
pub use ratio::Ratio;
pub use student::{student_cumulative, student_quantile};
pub use summary::{Summary, mean, median, quantile, variance};
