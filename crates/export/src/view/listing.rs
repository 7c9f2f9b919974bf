use std::ops::ControlFlow;

use comity_grants::Operation;
use comity_vfs::{Attr, Disk, Listed, Listing, Result, Status, Wire};

use super::{Node, Seen, View};
use crate::limits::LISTING_ENTRIES_MAX;

/// A function that is called with the entries of a directory.
pub type VisitSeen<'a> = dyn FnMut(&Listing<'_, Disk>, Option<&Seen>) -> ControlFlow<()> + 'a;

/// The result of one part of a listing.
#[derive(Debug, Clone, Copy)]
pub struct ListingPart {
    /// The directory's attributes.
    pub dir: Attr<Wire>,
    /// Set if there may be more entries although the visitor did not stop, because many hidden
    /// entries were examined. The listing continues after this cookie of the backend.
    pub rest: Option<u64>,
}

impl View<'_> {
    /// See [`comity_vfs::Fs::readdir`]. With [`Listed::Nodes`] each entry comes with its object as
    /// the caller sees it, never as on disk. Entries that are hidden from the caller are left out;
    /// the check needs only attributes that a listing with nodes reads anyway. At most
    /// [`LISTING_ENTRIES_MAX`] entries of a cloaked directory are examined.
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
        if self.is_guarded() {
            return self.readdir_guarded(dir, cookie, visit);
        }
        let mut visit = |listing: &Listing<'_, Disk>| match &listing.node {
            Some(node) => self.show(listing, node, visit),
            None => visit(listing, None),
        };
        let at = self.gate(dir, Operation::Read)?;
        let attr = at.fs.readdir(at.cred, dir.handle(), cookie, wanted, &mut visit)?;
        Ok(ListingPart { dir: self.attr_out(&attr), rest: None })
    }

    fn readdir_guarded(
        &self,
        dir: &Node,
        cookie: u64,
        visit: &mut VisitSeen<'_>,
    ) -> Result<ListingPart> {
        let before = self.glance();
        let (mut left, mut rest) = (LISTING_ENTRIES_MAX, None);
        let mut visit = |listing: &Listing<'_, Disk>| {
            // An entry without its object cannot be checked.
            if let Some(node) = &listing.node {
                // The arguments cost as much as the check if they are made for every caller.
                if before.is_some() {
                    self.found(before, (dir, listing.name), node);
                }
                self.show(listing, node, visit)?;
            }
            left -= 1;
            if left > 0 {
                return ControlFlow::Continue(());
            }
            rest = Some(listing.cookie);
            ControlFlow::Break(())
        };
        let (at, nodes) = (self.gate(dir, Operation::Read)?, Listed::Nodes);
        let attr = at.fs.readdir(at.cred, dir.handle(), cookie, nodes, &mut visit)?;
        Ok(ListingPart { dir: self.attr_out(&attr), rest })
    }

    /// Passes an entry to the visitor as the caller sees it, unless it is hidden.
    #[inline(always)]
    fn show(
        &self,
        listing: &Listing<'_, Disk>,
        node: &comity_vfs::Node<Disk>,
        visit: &mut VisitSeen<'_>,
    ) -> ControlFlow<()> {
        let named = Listing { node: None, ..*listing };
        match self.seen_or(node, Status::NoEnt) {
            Ok(seen) => visit(&named, Some(&seen)),
            Err(_) => ControlFlow::Continue(()),
        }
    }
}
