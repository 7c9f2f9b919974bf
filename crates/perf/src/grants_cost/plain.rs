use std::path::Path;

use anyhow::Result;

use crate::instructions::{COUNTED, count};

/// Instructions of a plain call in a server with callers by key, and in one without.
#[derive(Debug)]
pub(super) struct PlainCall {
    pub(super) operation: &'static str,
    pub(super) with: u64,
    pub(super) without: u64,
}

impl PlainCall {
    /// Returns how much more a call takes, in percent.
    pub(super) fn more_percent(&self) -> f64 {
        (self.with as f64 - self.without as f64) * 100.0 / self.without as f64
    }
}

/// Counts each operation in the two programs.
///
/// # Errors
/// Valgrind or a program is missing or fails.
pub(super) fn count_all((with, without): (&Path, &Path)) -> Result<Vec<PlainCall>> {
    let both = |operation| {
        let (with, without) = (count(with, operation)?, count(without, operation)?);
        Ok(PlainCall { operation, with, without })
    };
    COUNTED.into_iter().map(both).collect()
}
