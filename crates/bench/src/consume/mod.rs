//! Consumers: each keeps one resource of a machine busy for a part of the time, so that a model of
//! load can be compared with what calls then cost.

mod datagrams;
mod disk;
mod duty;
mod memory;
mod null_calls;
mod options;
mod processor;

pub use options::{ConsumeOptions, command};
