use std::ops::ControlFlow;

use comity_export::{Position, Seen, View};
use comity_proto::nfs3::{Entry3, Entryplus3};
use comity_vfs::{Disk, Listed, Listing, Result, Status};
use comity_xdr::{Checkpoint, Encoder, Opaque, padding};

use crate::program::Nfs3;

/// Bytes after the entries: "no more", and whether the directory ends here.
const TAIL_BYTES: usize = 4 + 4;

/// A page of entries that is being written; it never exceeds the length that the client asked
/// for.
pub(super) struct Page<'r> {
    nfs: &'r Nfs3,
    reply: &'r mut Encoder,
    start: Checkpoint,
    bytes_max: usize,
    names_left: usize,
    listed: Listed,
    entries: usize,
    full: bool,
}

impl<'r> Page<'r> {
    /// A page that begins at `start`, with at most so many bytes in all and of names.
    pub(super) const fn new(
        nfs: &'r Nfs3,
        (reply, start): (&'r mut Encoder, Checkpoint),
        (bytes_max, names_max): (usize, usize),
        listed: Listed,
    ) -> Self {
        let (names_left, entries, full) = (names_max, 0, false);
        Self { nfs, reply, start, bytes_max, names_left, listed, entries, full }
    }

    /// Returns the detail of each entry.
    pub(super) const fn listed(&self) -> Listed {
        self.listed
    }

    /// Returns whether the page takes no more entries.
    pub(super) const fn is_full(&self) -> bool {
        self.full
    }

    /// Returns whether the page has no entries yet, and has room.
    pub(super) const fn awaits_entry(&self) -> bool {
        self.entries == 0 && !self.full
    }

    /// Ends the page before the end of the directory, though there is room left.
    pub(super) const fn cut(&mut self) {
        self.full = true;
    }

    /// Appends an entry as the backend shows it, whole or not at all.
    pub(super) fn entry(
        &mut self,
        view: &View<'_>,
        listing: &Listing<'_, Disk>,
        seen: Option<&Seen>,
    ) -> ControlFlow<()> {
        let cookie = Position::Entry(listing.cookie).to_wire();
        let (fileid, name) = (listing.fileid, Opaque(listing.name.bytes()));
        self.append(view, &Entry3 { fileid, name, cookie }, seen)
    }

    /// Appends `.` or `..`, whole or not at all.
    pub(super) fn dot(
        &mut self,
        view: &View<'_>,
        name: &'static [u8],
        seen: &Seen,
        behind: Position,
    ) -> ControlFlow<()> {
        let (fileid, name, cookie) = (seen.attr.fileid, Opaque(name), behind.to_wire());
        self.append(view, &Entry3 { fileid, name, cookie }, Some(seen))
    }

    /// Ends the page.
    ///
    /// # Errors
    /// [`Status::TooSmall`] if its end does not fit, or if there are entries and not even
    /// one of them fits.
    pub(super) fn end(self) -> Result<()> {
        let room = self.reply.length_since(self.start) + TAIL_BYTES <= self.bytes_max;
        if !room || self.full && self.entries == 0 {
            return Err(Status::TooSmall);
        }
        self.reply.value(&false);
        self.reply.value(&!self.full);
        Ok(())
    }

    fn append(
        &mut self,
        view: &View<'_>,
        entry: &Entry3<'_>,
        seen: Option<&Seen>,
    ) -> ControlFlow<()> {
        let (before, names) = (self.reply.checkpoint(), names_bytes(entry));
        if self.full || names > self.names_left && self.entries > 0 {
            self.full = true;
            return ControlFlow::Break(());
        }
        match self.listed {
            Listed::Names => {
                self.reply.value(&true);
                self.reply.value(entry);
            }
            Listed::Nodes => self.plus(view, entry, seen),
        }
        if self.reply.length_since(self.start) + TAIL_BYTES > self.bytes_max {
            self.reply.rollback(before);
            self.full = true;
            return ControlFlow::Break(());
        }
        self.names_left = self.names_left.saturating_sub(names);
        self.entries += 1;
        ControlFlow::Continue(())
    }

    fn plus(&mut self, view: &View<'_>, entry: &Entry3<'_>, seen: Option<&Seen>) {
        let sealed = seen.map(|seen| view.seal(&seen.node));
        let next = Entryplus3 {
            entry: *entry,
            name_attributes: seen.and_then(|seen| self.nfs.beside(view, &seen.node, &seen.attr)),
            name_handle: sealed.as_ref().map(|sealed| Opaque(sealed.bytes())),
        };
        next.encode_next(self.reply);
    }
}

/// Returns the bytes of an entry that count for `dircount`: number, name and cookie.
const fn names_bytes(entry: &Entry3<'_>) -> usize {
    let length = entry.name.0.len();
    8 + 4 + length + padding(length) + 8
}
