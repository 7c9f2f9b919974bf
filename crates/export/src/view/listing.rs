use std::ops::ControlFlow;

use comity_vfs::{Attr, Disk, Listed, Listing, Result, Status, Wire};

use super::{Node, Seen, View};
use crate::limits::LISTING_ENTRIES_MAX;

/// Who is shown the entries of a directory.
pub type VisitSeen<'a> = dyn FnMut(&Listing<'_, Disk>, Option<&Seen>) -> ControlFlow<()> + 'a;

/// How far a listing came in one go.
#[derive(Debug, Clone, Copy)]
pub struct ListingPart {
    /// The directory's attributes.
    pub dir: Attr<Wire>,
    /// Set if there may be more entries although the visitor did not break off: so many were looked
    /// at that the caller may not know of. The listing goes on behind this cookie of the backend.
    pub rest: Option<u64>,
}

impl View<'_> {
    /// See [`comity_vfs::Fs::readdir`]. With [`Listed::Nodes`] each entry comes with its object as
    /// the caller sees it, never as the file system does. Entries that the caller may not know of
    /// are left out, and what they are judged by is what a listing with nodes fetches anyway. Of a
    /// cloaked export at most [`LISTING_ENTRIES_MAX`] entries are looked at.
    ///
    /// # Errors
    /// [`Status`].
    pub fn readdir(
        &self,
        dir: &Node,
        cookie: u64,
        wanted: Listed,
        visit: &mut VisitSeen<'_>,
    ) -> Result<ListingPart> {
        let (mut left, mut last, mut rest) = (LISTING_ENTRIES_MAX, cookie, None);
        let wanted = if self.is_cloaked() { Listed::Nodes } else { wanted };
        let mut visit = |listing: &Listing<'_, Disk>| {
            if left == 0 && self.is_cloaked() {
                rest = Some(last);
                return ControlFlow::Break(());
            }
            (left, last) = (left.saturating_sub(1), listing.cookie);
            self.show(listing, visit)
        };
        let attr = self.fs().readdir(self.cred(), dir.handle(), cookie, wanted, &mut visit)?;
        Ok(ListingPart { dir: self.attr_out(&attr), rest })
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
