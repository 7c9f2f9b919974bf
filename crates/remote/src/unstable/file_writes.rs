use std::sync::Arc;

use comity_vfs::{Result, Status};

use super::copies::Copies;
use super::kept_ranges::{KeptData, KeptRanges, WriteVerifier};
use crate::compound::OpenOwner;

/// The writes of one file.
#[derive(Debug, Default)]
pub(super) struct FileWrites {
    pub(super) kept: KeptRanges,
    /// Data that the server has copied itself, which this client cannot write again.
    pub(super) copies: Copies,
    /// Number of writes under way.
    pub(super) writers: u32,
    /// True while lost data is written again. New writes wait, because the old data would overwrite
    /// theirs.
    pub(super) is_rewriting: bool,
    /// Number of commits under way.
    pub(super) commits: u32,
    /// The last loss of data. It concerns the commits that began before it, and if none of them
    /// has reported it, the next one.
    loss: Option<Loss>,
}

/// A loss of data that was written.
#[derive(Debug)]
struct Loss {
    /// Its number among all losses.
    number: u64,
    status: Status,
    is_reported: bool,
}

/// The numbers of writes and losses when a COMMIT began.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    /// The serial number of the last write or copy.
    pub(super) serial: u64,
    /// Number of losses.
    pub(super) losses: u64,
}

/// The lost data of a file: pieces with their offsets, and copies.
type LostData = (Vec<(u64, KeptData)>, Copies);

impl FileWrites {
    /// Begins a COMMIT; returns the caller that wrote last.
    pub(super) fn begin_commit(&mut self) -> Option<Arc<OpenOwner>> {
        self.commits += 1;
        self.kept.newest().map(|piece| Arc::clone(&piece.owner))
    }

    /// Forgets the data that a COMMIT has made stable; returns whether data was lost.
    ///
    /// # Errors
    /// A loss since the COMMIT began.
    pub(super) fn end_commit(&mut self, begun: Begun, verifier: WriteVerifier) -> Result<bool> {
        self.report_loss(|loss| loss.number > begun.losses)?;
        self.kept.take(begun.serial, |piece| piece.verifier == verifier);
        self.copies.settle(begun.serial, verifier);
        Ok(self.kept.has(begun.serial) || self.copies.has(begun.serial))
    }

    /// Takes the data that a COMMIT covers and that was lost; `None` while other threads write to
    /// the file.
    pub(super) fn begin_rewrite(
        &mut self,
        begun: Begun,
        verifier: WriteVerifier,
    ) -> Option<Result<LostData>> {
        if self.writers > 0 || self.is_rewriting {
            return None;
        }
        if let Err(status) = self.report_loss(|loss| loss.number > begun.losses) {
            return Some(Err(status));
        }
        self.is_rewriting = true;
        let lost = self.kept.take(begun.serial, |piece| piece.verifier != verifier);
        Some(Ok((lost, self.copies.take(begun.serial))))
    }

    /// Notes a loss of data.
    pub(super) fn lose(&mut self, number: u64, status: Status, is_reported: bool) {
        self.loss = Some(Loss { number, status, is_reported });
    }

    /// Returns the last loss as an error if no COMMIT has reported it.
    pub(super) fn report_unreported_loss(&mut self) -> Result<()> {
        self.report_loss(|loss| !loss.is_reported)
    }

    fn report_loss(&mut self, is_due: impl FnOnce(&Loss) -> bool) -> Result<()> {
        let Some(loss) = self.loss.as_mut().filter(|loss| is_due(loss)) else { return Ok(()) };
        loss.is_reported = true;
        Err(loss.status)
    }

    pub(super) fn has_unreported_loss(&self) -> bool {
        self.loss.as_ref().is_some_and(|loss| !loss.is_reported)
    }

    /// Returns whether the file has data that is not known to be stable.
    pub(super) fn has_unstable(&self) -> bool {
        !self.kept.is_empty() || !self.copies.is_empty()
    }

    pub(super) fn forget(&mut self) {
        self.kept.cut(0, u64::MAX);
        self.copies = Copies::default();
    }

    pub(super) fn is_idle(&self) -> bool {
        !self.has_unstable()
            && self.writers == 0
            && !self.is_rewriting
            && self.commits == 0
            && !self.has_unreported_loss()
    }
}
