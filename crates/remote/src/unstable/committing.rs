//! Commits that are repeated until they are answered, and commits that make room.

use std::thread;

use comity_vfs::{Handle, Result, Status};

use super::writes::{CommitTurn, UnstableWrites};
use crate::limits::COMMIT_PAUSE;

/// Repeats a COMMIT until it is answered. If a caller got `Delay` instead, it would take its data
/// for stable or for lost.
///
/// # Errors
/// The first error other than [`Status::Delay`].
fn until_answered<T>(mut commit: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match commit() {
            Err(Status::Delay) => thread::sleep(COMMIT_PAUSE),
            answered => return answered,
        }
    }
}

impl UnstableWrites {
    /// Commits a file by `commit`, which is repeated until it is answered.
    ///
    /// # Errors
    /// A loss of data that was not reported yet; [`Status::Interrupted`]; the error of `commit`.
    pub(crate) fn commit<T>(
        &self,
        node: &Handle,
        commit: impl Fn(&CommitTurn<'_>) -> Result<T>,
    ) -> Result<T> {
        let turn = self.begin_commit(node)?;
        until_answered(|| commit(&turn))
    }

    /// Commits files by `commit` until `bytes` more fit into the memory for unstable data. A
    /// failure is reported by the next COMMIT of the file.
    ///
    /// # Errors
    /// [`Status::Interrupted`].
    pub(crate) fn make_room<T>(
        &self,
        bytes: usize,
        commit: impl Fn(&Handle, &CommitTurn<'_>) -> Result<T>,
    ) -> Result<()> {
        while let Some(relief) = self.begin_relief(bytes)? {
            let turn = self.begin_commit_for_room(&relief.node)?;
            match until_answered(|| commit(&relief.node, &turn)) {
                Ok(_) => {}
                Err(Status::Interrupted) => return Err(Status::Interrupted),
                Err(status) => {
                    tracing::warn!(file = ?relief.node, %status, "written data is lost");
                    relief.fail(status);
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_that_timed_out_is_repeated_and_other_errors_are_returned() {
        let mut answers = vec![Ok(7), Err(Status::Delay), Err(Status::Delay)];
        assert_eq!(until_answered(|| answers.pop().unwrap()), Ok(7));
        assert!(answers.is_empty());
        let mut answers = vec![Ok(7), Err(Status::Io)];
        assert_eq!(until_answered(|| answers.pop().unwrap()), Err(Status::Io));
        assert_eq!(answers, [Ok(7)]);
    }
}
