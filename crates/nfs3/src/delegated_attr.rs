//! Size and times of a file that a client of NFSv4 may write without asking: the newest bytes
//! are at that client (RFC 8881, 10.4.3). GETATTR asks the client; other calls leave such
//! attributes out, and clients that want them call GETATTR.

use comity_export::{Node, View};
use comity_proto::nfs3::{PostOpAttr, WccData};
use comity_vfs::{Attr, FileType, Wire};

use crate::attributes::fattr3;
use crate::program::Nfs3;

impl Nfs3 {
    /// Returns the attributes of an object beside other results, or none if they may be
    /// old.
    #[inline]
    pub(crate) fn beside(&self, view: &View<'_>, node: &Node, attr: &Attr<Wire>) -> PostOpAttr {
        let is_old = self.anything_delegated().is_some_and(|delegated| {
            attr.file_type == FileType::Regular && delegated.may_be_written(view, node)
        });
        (!is_old).then(|| fattr3(attr))
    }

    /// Returns the attributes of a file as they are now, for a failed reply.
    pub(crate) fn beside_failure(&self, view: &View<'_>, node: &Node) -> PostOpAttr {
        view.getattr(node).ok().and_then(|attr| self.beside(view, node, &attr))
    }

    /// Returns the attributes of a file whose change was refused, as weak cache consistency
    /// data without a part before: they were not read before the operation.
    pub(crate) fn wcc_beside_failure(&self, view: &View<'_>, node: &Node) -> WccData {
        WccData { before: None, after: self.beside_failure(view, node) }
    }
}
