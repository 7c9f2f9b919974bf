//! Requests to list a directory: READDIR, READDIRPLUS.

use std::ops::ControlFlow;

use comity_vfs::{Attr, Disk, FileType, Listed, Listing, Node, Status};
use rustix::io;

use super::{KnownNode, Mounted};
use crate::callers::Requester;
use crate::lower::Keep;

/// The kernel's offsets after `.` and `..`. All other offsets are cookies of the `Fs`: 0 is the
/// start in both, and the kernel accepts offsets up to `i64::MAX`, which ext4 does use.
const DOT: u64 = 1;
const DOTS: u64 = 2;

/// The offsets for the cookies 1 and 2 of an `Fs`, which no NFSv4 server uses (RFC 8881, 18.23.3).
/// File systems whose cookies are hashes are unlikely to use these values.
const OF_COOKIE_1: u64 = 0x7fff_fffe_c001_0001;
const OF_COOKIE_2: u64 = 0x7fff_fffe_c001_0002;

const fn offset_of(cookie: u64) -> u64 {
    match cookie {
        1 => OF_COOKIE_1,
        2 => OF_COOKIE_2,
        cookie => cookie,
    }
}

const fn cookie_of(offset: u64) -> u64 {
    match offset {
        DOT | DOTS => 0,
        OF_COOKIE_1 => 1,
        OF_COOKIE_2 => 2,
        offset => offset,
    }
}

/// An entry for the kernel.
#[derive(Debug)]
pub(crate) struct ShownEntry<'a> {
    /// Its name.
    pub(crate) name: &'a [u8],
    /// The offset after it.
    pub(crate) offset: u64,
    /// Its inode number.
    pub(crate) fileid: u64,
    /// Its type, if it is known.
    pub(crate) file_type: Option<FileType>,
    /// The object, for READDIRPLUS.
    pub(crate) known: Option<KnownNode>,
}

impl Mounted {
    /// Passes entries after `offset` to `show` until that returns that its buffer is full. With
    /// `plus`, counts a lookup of each object that was shown.
    pub(crate) fn readdir(
        &self,
        who: Requester,
        open: u64,
        (offset, plus): (u64, bool),
        show: &mut dyn FnMut(&ShownEntry<'_>) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let dir = self.opens.get(open)?;
        if dir.end.is_at(offset) {
            return Ok(());
        }
        let attr = if offset < DOTS { Some(self.fs.getattr(&dir.handle)) } else { None };
        if let Some(attr) = attr {
            let attr = super::told(attr)?;
            if self.show_dots(dir.number, offset, &attr, show).is_break() {
                return Ok(());
            }
        }
        let cookie = cookie_of(offset);
        let wanted = if plus { Listed::Nodes } else { Listed::Names };
        let place = (dir.number, self.is_granted(&dir.handle));
        let (mut failure, mut end) = (Ok(()), Some(offset.max(DOTS)));
        self.verb(who, || {
            self.fs.readdir(&dir.cred, &dir.handle, cookie, wanted, &mut |entry| {
                let shown = self.show_entry(who, place, (entry, plus), show);
                let shown = shown.unwrap_or_else(|status| {
                    failure = Err(status);
                    ControlFlow::Break(())
                });
                end = shown.is_continue().then(|| offset_of(entry.cookie));
                shown
            })
        })?;
        if let Some(end) = end {
            dir.end.note(end);
        }
        failure
    }

    fn show_dots(
        &self,
        number: u64,
        offset: u64,
        attr: &Attr<Disk>,
        show: &mut dyn FnMut(&ShownEntry<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let dots: [(&[u8], u64); 2] = [(b".", DOT), (b"..", DOTS)];
        for (name, behind) in dots.into_iter().filter(|(_, behind)| *behind > offset) {
            let file_type = Some(FileType::Directory);
            let known = KnownNode { number, generation: 0, attr: *attr, keep: Keep::NOTHING };
            let known = Some(known);
            show(&ShownEntry { name, offset: behind, fileid: attr.fileid, file_type, known })?;
        }
        ControlFlow::Continue(())
    }

    fn show_entry(
        &self,
        who: Requester,
        (dir, is_granted): (u64, bool),
        (entry, plus): (&Listing<'_, Disk>, bool),
        show: &mut dyn FnMut(&ShownEntry<'_>) -> ControlFlow<()>,
    ) -> io::Result<ControlFlow<()>> {
        let (name, fileid) = (entry.name.bytes(), entry.fileid);
        let offset = offset_of(entry.cookie);
        let node = match entry.node {
            None if plus => match self.node_of(who, dir, entry) {
                // The entry was removed after its name was read.
                Err(Status::NoEnt) => return Ok(ControlFlow::Continue(())),
                node => node.ok(),
            },
            node => node,
        };
        let place = || Some((dir, name.into()));
        let known = node.filter(|_| plus).map(|node| self.introduce(&node, place())).transpose()?;
        let known = if is_granted { known.map(KnownNode::unkept) } else { known };
        let file_type = node.map(|node| node.attr.file_type);
        let shown = show(&ShownEntry { name, offset, fileid, file_type, known });
        if let Some(known) = known.filter(|_| shown.is_break()) {
            self.inodes.forget(known.number, 1);
        }
        Ok(shown)
    }

    fn node_of(
        &self,
        who: Requester,
        dir: u64,
        entry: &Listing<'_, Disk>,
    ) -> Result<Node<Disk>, Status> {
        let dir = self.inodes.handle(dir).map_err(|_| Status::Stale)?;
        self.fs.lookup(&self.cred(who), &dir, entry.name).map(|found| found.node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cookie_has_an_offset_of_its_own() {
        for cookie in [1, 2, 3, 1 << 40, i64::MAX as u64] {
            assert_eq!(cookie_of(offset_of(cookie)), cookie);
            assert!(offset_of(cookie) > DOTS && offset_of(cookie) <= i64::MAX as u64);
        }
        assert_eq!([0, DOT, DOTS].map(cookie_of), [0; 3]);
    }
}
