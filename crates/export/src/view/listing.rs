use std::ops::ControlFlow;

use comity_vfs::{Attr, Disk, Listed, Listing, Result, Status, Wire};

use super::{Node, Seen, View};

/// Who is shown the entries of a directory.
pub type VisitSeen<'a> = dyn FnMut(&Listing<'_, Disk>, Option<&Seen>) -> ControlFlow<()> + 'a;

impl View<'_> {
    /// See [`comity_vfs::Fs::readdir`]. With [`Listed::Nodes`] each entry comes with its object as
    /// the caller sees it, never as the file system does. Entries that the caller may not know of
    /// are left out, and what they are judged by is what a listing with nodes fetches anyway.
    ///
    /// # Errors
    /// [`Status`].
    pub fn readdir(
        &self,
        dir: &Node,
        cookie: u64,
        wanted: Listed,
        visit: &mut VisitSeen<'_>,
    ) -> Result<Attr<Wire>> {
        let wanted = if self.is_cloaked() { Listed::Nodes } else { wanted };
        let mut visit = |listing: &Listing<'_, Disk>| self.show(listing, visit);
        let attr = self.fs().readdir(self.cred(), dir.handle(), cookie, wanted, &mut visit)?;
        Ok(self.attr_out(&attr))
    }

    /// Shows somebody an entry as the caller sees it. Without its object it cannot be judged.
    #[inline(always)]
    fn show(&self, listing: &Listing<'_, Disk>, visit: &mut VisitSeen<'_>) -> ControlFlow<()> {
        let named = Listing { node: None, ..*listing };
        match listing.node.as_ref().map(|node| self.seen_or(node, Status::NoEnt)) {
            Some(Ok(seen)) => visit(&named, Some(&seen)),
            None if !self.is_cloaked() => visit(&named, None),
            _ => ControlFlow::Continue(()),
        }
    }
}
