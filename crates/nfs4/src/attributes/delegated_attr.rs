//! Size and change of a file that another client may write without asking: its newest bytes are
//! there (RFC 8881, 10.4.3).

use comity_coherence::{Asker, Newest};
use comity_export::{Node, View};
use comity_vfs::{Attr, FileType, Wire};

use crate::compound::Compound;
use crate::stop::Stop;

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
        let (now, known, memory) = (self.now(), self.known(), self.nfs.memory());
        let asker = Asker { client: known.as_deref(), ..self.asker(None) };
        let pause = |moment| patient && memory.wait_for_clients(now, moment);
        Ok(asker.newest((view, node), attr, pause)?)
    }
}
