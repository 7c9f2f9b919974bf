//! Size and change of a file that another client may write without asking: its newest bytes are
//! there (RFC 8881, 10.4.3).

use std::time::SystemTime;

use comity_export::{Node, View};
use comity_proto::nfs4::Nfsstat4;
use comity_state::WriterSays;
use comity_vfs::{Attr, FileType, Wire};

use crate::compound::Compound;
use crate::stop::Stop;

/// Attributes as they are where the newest bytes are.
pub(super) struct Newest {
    pub(super) attr: Attr<Wire>,
    pub(super) change: u64,
}

impl Newest {
    /// As the file system says it.
    pub(super) fn stored(attr: &Attr<Wire>) -> Self {
        Self { attr: *attr, change: attr.change() }
    }

    fn written(attr: &Attr<Wire>, size: u64, change: u64) -> Self {
        Self { attr: attr.written(size, SystemTime::now().into()), change }
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
        let (key, known) = (view.key(node), self.known());
        let memory = self.nfs.memory();
        let pause = |moment| patient && memory.wait_for_clients(self.now(), moment);
        let asked = (&key, attr.change());
        match self.engine().writer_says_soon(self.now(), known.as_deref(), asked, pause) {
            WriterSays::Nothing => Ok(Newest::stored(attr)),
            WriterSays::Changed { size, change } => Ok(Newest::written(attr, size, change)),
            WriterSays::Wait => Err(Nfsstat4::Delay.into()),
        }
    }
}
