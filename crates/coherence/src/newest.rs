//! Size and times of a file that a client may write without asking: its newest bytes are there (RFC
//! 8881, 10.4.3).

use std::time::{Duration, SystemTime};

use comity_export::{Node, View};
use comity_state::DelegatedAttributes;
use comity_vfs::{Attr, FileType, Result, Status, Wire};

use crate::asker::Asker;

/// Attributes as they are where the newest bytes are.
#[derive(Debug, Clone, Copy)]
pub struct Newest {
    /// The attributes.
    pub attr: Attr<Wire>,
    /// The change attribute.
    pub change: u64,
}

impl Newest {
    /// Returns attributes as the file system has them.
    #[must_use]
    pub fn stored(attr: &Attr<Wire>) -> Self {
        Self { attr: *attr, change: attr.change }
    }

    fn written(attr: &Attr<Wire>, size: u64, change: u64) -> Self {
        Self { attr: attr.written(size, SystemTime::now().into()), change }
    }
}

impl Asker<'_> {
    /// Returns the newest attributes of an object: another client that may write it is asked.
    /// `pause` lets a moment pass in which it can answer.
    ///
    /// # Errors
    /// [`Status::Delay`]: it did not answer at once.
    pub fn newest(
        &self,
        (view, node): (&View<'_>, &Node),
        attr: &Attr<Wire>,
        pause: impl FnMut(Duration) -> bool,
    ) -> Result<Newest> {
        if attr.file_type != FileType::Regular || !self.engine.has_delegations() {
            return Ok(Newest::stored(attr));
        }
        let (key, change) = (view.key(node), attr.change);
        match self.engine.delegated_attributes_soon(self.now, self.client, (&key, change), pause) {
            DelegatedAttributes::OnDisk => Ok(Newest::stored(attr)),
            DelegatedAttributes::Changed { size, change } => {
                Ok(Newest::written(attr, size, change))
            }
            DelegatedAttributes::Pending => Err(Status::Delay),
        }
    }
}
