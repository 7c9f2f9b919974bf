//! Exports that move are frozen while the state of their clients is on its way.

use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use comity_export::{ExportMark, Plan, Whereabouts};
use comity_proto::migration::{MigrationArgs, MigrationId, OfferedExport};
use comity_state::{ExportedVolume, MovingFiles};
use comity_xdr::{Counted, Opaque};

use super::MigrationParts;
use super::migrations::MigrationStep;
use crate::configuration::PlanTurn;
use crate::limits::{FREEZE_PATIENCE, FREEZE_POLL, RECALL_PATIENCE, RECALL_POLL};

/// Checks that clients will be able to use state at the other server.
pub(crate) type CheckState<'c> = &'c dyn Fn(&ExportedVolume) -> Result<()>;

/// Recalls what cannot move, and waits until all state could move: clients can return nothing
/// while the exports are frozen.
pub(crate) fn rehearse(
    parts: &MigrationParts,
    (moving, check): (&MovingFiles, CheckState<'_>),
    progress: &MigrationStep,
) -> Result<()> {
    let comity_nfs4::Memory { engine, clock, .. } = &parts.memory;
    engine.recall_volume(clock.now(), moving.clone());
    let since = Instant::now();
    loop {
        match engine.export_volume(clock.now(), moving.clone()) {
            Ok(exported) => return check(&exported),
            Err(why) if since.elapsed() > RECALL_PATIENCE => bail!("{why}: try again later"),
            Err(_) => progress.check().map(|()| thread::sleep(RECALL_POLL))?,
        }
    }
}

/// Makes the arguments by which exports are offered to another server.
pub(crate) fn offer_of<'a>(
    id: MigrationId,
    paths: &'a [PathBuf],
    marks: &'a [ExportMark],
) -> MigrationArgs<'a> {
    let offered = |(path, mark): (&'a PathBuf, &'a ExportMark)| OfferedExport {
        path: Opaque(path.as_os_str().as_bytes()),
        top: Opaque(&mark.top),
        volume: mark.volume,
        fileid: mark.fileid,
        change: mark.change,
    };
    let exports = paths.iter().zip(marks).map(offered).collect();
    MigrationArgs { id, exports: Counted(exports) }
}

/// Exports that nobody serves. They are served here again when it is dropped, unless they are
/// leaving.
pub(crate) struct Frozen<'m> {
    parts: &'m MigrationParts,
    turn: &'m PlanTurn<'m>,
    /// The plan in which they are served.
    plan: Arc<Plan>,
    since: Instant,
    is_leaving: bool,
}

impl<'m> Frozen<'m> {
    /// Makes callers wait, and waits until no call uses the exports any more.
    pub(crate) fn begin(
        parts: &'m MigrationParts,
        turn: &'m PlanTurn<'m>,
        paths: &[PathBuf],
    ) -> Result<Self> {
        let frozen = parts.exports.current().placing(paths, &Whereabouts::Moving);
        let frozen = frozen.map_err(|why| anyhow!(why))?;
        let (since, plan) = (Instant::now(), turn.put_in_force(frozen));
        let frozen = Self { parts, turn, plan, since, is_leaving: false };
        while Arc::strong_count(&frozen.plan) > 1 {
            frozen.pause("calls to the exports are still under way")?;
        }
        Ok(frozen)
    }

    /// Returns the plan in which the exports are served here.
    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the time for which clients have waited.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Returns the time at which the state must have been sent.
    pub(crate) fn until(&self) -> Instant {
        self.since + FREEZE_PATIENCE
    }

    /// Returns the state of the clients.
    pub(crate) fn state(
        &self,
        (moving, check): (&MovingFiles, CheckState<'_>),
    ) -> Result<ExportedVolume> {
        let comity_nfs4::Memory { engine, clock, .. } = &self.parts.memory;
        loop {
            match engine.hand_over_volume(clock.now(), moving.clone()) {
                Ok(exported) => {
                    check(&exported)?;
                    return Ok(exported);
                }
                Err(why) => self.pause(&why.to_string())?,
            }
        }
    }

    /// Sets whether the exports stay frozen when this is dropped.
    pub(crate) const fn set_leaving(&mut self, is_leaving: bool) {
        self.is_leaving = is_leaving;
    }

    /// Waits a moment, unless callers have waited for too long.
    fn pause(&self, why: &str) -> Result<()> {
        if self.since.elapsed() > FREEZE_PATIENCE {
            let seconds = FREEZE_PATIENCE.as_secs();
            bail!(
                "{why}, and clients have waited for {seconds} s: the exports stay here; try again"
            );
        }
        thread::sleep(FREEZE_POLL);
        Ok(())
    }
}

impl Drop for Frozen<'_> {
    fn drop(&mut self) {
        if !self.is_leaving {
            self.turn.put_in_force(Arc::clone(&self.plan));
        }
    }
}
