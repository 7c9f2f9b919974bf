//! Commits that no caller may be told to try again, and commits that make room.

use std::thread;

use comity_vfs::{Handle, Result, Status};

use super::writes::UnstableWrites;
use crate::limits::COMMIT_PAUSE;

/// Does a COMMIT until it is answered: a caller who was told to come again later would take its
/// data for stable, or for lost.
///
/// # Errors
/// The first error other than [`Status::Delay`].
pub(crate) fn until_answered<T>(mut commit: impl FnMut() -> Result<T>) -> Result<T> {
    loop {
        match commit() {
            Err(Status::Delay) => thread::sleep(COMMIT_PAUSE),
            answered => return answered,
        }
    }
}

impl UnstableWrites {
    /// Commits files by `commit` until so many bytes more may be kept until they are stable. The
    /// next COMMIT of a file tells a failure.
    ///
    /// # Errors
    /// [`Status::Interrupted`].
    pub(crate) fn make_room<T>(
        &self,
        bytes: usize,
        commit: impl Fn(&Handle) -> Result<T>,
    ) -> Result<()> {
        while let Some(turn) = self.begin_relief(bytes)? {
            match commit(&turn.node) {
                Ok(_) => {}
                Err(Status::Interrupted) => return Err(Status::Interrupted),
                Err(status) => {
                    tracing::warn!(file = ?turn.node, %status, "written data is lost");
                    turn.fail(status);
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
    fn a_commit_that_is_late_is_sent_again_and_other_errors_are_told() {
        let mut answers = vec![Ok(7), Err(Status::Delay), Err(Status::Delay)];
        assert_eq!(until_answered(|| answers.pop().unwrap()), Ok(7));
        assert!(answers.is_empty());
        let mut answers = vec![Ok(7), Err(Status::Io)];
        assert_eq!(until_answered(|| answers.pop().unwrap()), Err(Status::Io));
        assert_eq!(answers, [Ok(7)]);
    }
}
