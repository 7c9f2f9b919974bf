//! Losses of data that was written to a file and could not be stored in it.

use comity_vfs::{Result, Status};

/// The losses of data of one file. A loss is reported by each commit that began before it, and if
/// there is none, by the next one.
#[derive(Debug, Default)]
pub(crate) struct Losses {
    /// Number of losses so far.
    count: u64,
    last: Option<Loss>,
}

#[derive(Debug, Clone, Copy)]
struct Loss {
    status: Status,
    is_reported: bool,
}

impl Losses {
    /// Number of losses so far: a commit keeps it from its beginning to its end.
    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    /// Notes a loss.
    pub(crate) const fn note(&mut self, status: Status) {
        self.count += 1;
        self.last = Some(Loss { status, is_reported: false });
    }

    /// Reports a loss at the end of a commit that began after `begun` losses.
    ///
    /// # Errors
    /// The last loss, if no commit has reported it or it came after the beginning of this one.
    pub(crate) fn report(&mut self, begun: u64) -> Result<()> {
        let count = self.count;
        let is_due = |loss: &&mut Loss| count > begun || !loss.is_reported;
        let Some(loss) = self.last.as_mut().filter(is_due) else { return Ok(()) };
        loss.is_reported = true;
        Err(loss.status)
    }

    /// Returns whether there is a loss that no commit has reported.
    pub(crate) fn awaits_report(&self) -> bool {
        self.last.is_some_and(|loss| !loss.is_reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_commit_that_began_before_a_loss_reports_it() {
        let mut losses = Losses::default();
        let begun = losses.count();
        losses.note(Status::NoSpc);
        assert!(losses.awaits_report());
        assert_eq!([begun; 2].map(|begun| losses.report(begun)), [Err(Status::NoSpc); 2]);
        assert!(!losses.awaits_report());
        assert_eq!(losses.report(losses.count()), Ok(()));
    }

    #[test]
    fn the_next_commit_reports_a_loss_that_none_has_reported() {
        let mut losses = Losses::default();
        losses.note(Status::NoSpc);
        assert_eq!(losses.report(losses.count()), Err(Status::NoSpc));
        assert_eq!(losses.report(losses.count()), Ok(()));
    }
}
