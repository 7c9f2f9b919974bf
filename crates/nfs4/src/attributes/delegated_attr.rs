//! Size and change attribute of a file for which another client has a write delegation (RFC 8881,
//! 10.4.3).

use comity_coherence::{Asker, Newest};
use comity_export::{Node, View};
use comity_vfs::{Attr, FileType, Wire};

use crate::compound::Compound;
use crate::stop::Stop;

impl Compound<'_> {
    /// Returns the newest attributes of an object. The client that has a write delegation of it is
    /// asked. If the caller is `patient`, it waits a moment for the answer; listings of many
    /// objects do not wait.
    ///
    /// # Errors
    /// DELAY: the client is being asked.
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
