//! Size and times of a file with a write delegation: the client that holds the delegation may have
//! newer data than the server (RFC 8881, 10.4.3).

use std::time::{Duration, SystemTime};

use comity_export::{Node, View};
use comity_state::DelegatedAttributes;
use comity_vfs::{Attr, FileType, Result, Status, Wire};

use crate::asker::Asker;

/// Attributes that include the changes of a client with a write delegation.
#[derive(Debug, Clone, Copy)]
pub struct Newest {
    /// The attributes.
    pub attr: Attr<Wire>,
    /// The change attribute.
    pub change: u64,
}

impl Newest {
    /// Returns the attributes in the file system.
    #[must_use]
    pub fn stored(attr: &Attr<Wire>) -> Self {
        Self { attr: *attr, change: attr.change }
    }

    fn written(attr: &Attr<Wire>, size: u64, change: u64) -> Self {
        Self { attr: attr.written(size, SystemTime::now().into()), change }
    }
}

impl Asker<'_> {
    /// Returns the newest attributes of an object; a client that may have written to it is asked.
    /// `pause` waits a moment for its answer.
    ///
    /// # Errors
    /// [`Status::Delay`]: the client did not answer at once.
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
