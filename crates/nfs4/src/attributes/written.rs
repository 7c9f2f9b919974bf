//! Size and change of a file that another client may write without asking: its newest bytes are
//! there (RFC 8881, 10.4.3).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use comity_export::{Node, View};
use comity_proto::nfs4::Nfsstat4;
use comity_state::{FileKey, WriterSays};
use comity_vfs::{Attr, FileType, Time, Wire};

use super::said::change;
use crate::compound::Compound;
use crate::limits::{WRITER_PAUSE, WRITER_PAUSES_MAX};
use crate::memory::key_of;
use crate::table::Stop;

/// Attributes as they are where the newest bytes are.
pub(super) struct Newest {
    pub(super) attr: Attr<Wire>,
    pub(super) change: u64,
}

impl Newest {
    /// As the file system says it.
    pub(super) fn stored(attr: &Attr<Wire>) -> Self {
        Self { attr: *attr, change: change(attr) }
    }

    fn written(attr: &Attr<Wire>, size: u64, change: u64) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Time { seconds: since.as_secs() as i64, nanoseconds: since.subsec_nanos() };
        Self { attr: Attr { size, mtime: now, ctime: now, ..*attr }, change }
    }
}

impl Compound<'_> {
    /// The newest attributes of an object: another client that may write it is asked. A client that
    /// answers at once is waited for, if the caller is `patient`; one that looks at many objects is
    /// not.
    ///
    /// # Errors
    /// DELAY: it is being asked.
    pub(super) fn newest(
        &self,
        (view, node): (&View<'_>, &Node),
        attr: &Attr<Wire>,
        patient: bool,
    ) -> Result<Newest, Stop> {
        if attr.file_type != FileType::Regular || !self.engine().has_delegations() {
            return Ok(Newest::stored(attr));
        }
        let key = key_of(view, node);
        let mut pauses = if patient { WRITER_PAUSES_MAX } else { 0 };
        loop {
            match self.ask_writer(&key, change(attr)) {
                WriterSays::Nothing => return Ok(Newest::stored(attr)),
                WriterSays::Changed { size, change } => {
                    return Ok(Newest::written(attr, size, change));
                }
                WriterSays::Wait if pauses > 0 && self.pause(WRITER_PAUSE) => pauses -= 1,
                WriterSays::Wait => return Err(Nfsstat4::Delay.into()),
            }
        }
    }

    fn ask_writer(&self, key: &FileKey, change: u64) -> WriterSays {
        let known = self.known();
        self.engine().writer_says(self.now(), known.as_deref(), key, change)
    }

    /// Says what is to be said to clients, and lets them have a moment to answer; false if there is
    /// nobody to wait so.
    fn pause(&self, moment: Duration) -> bool {
        let memory = self.nfs.memory();
        let (Some(callbacks), Some(pause)) = (&memory.callbacks, &memory.pause) else {
            return false;
        };
        callbacks.pump(self.now());
        pause(moment);
        true
    }
}
