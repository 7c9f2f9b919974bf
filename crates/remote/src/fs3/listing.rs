//! Listing a directory: READDIRPLUS if attributes are wanted, READDIR for names alone.

use std::ops::ControlFlow;

use comity_proto::nfs3::{
    Cookieverf3, DirlistHead, Entry3, NfsFh3, Nfsstat3, PostOpAttr, Readdir3args, Readdirplus3args,
    procedure,
};
use comity_vfs::{Attr, Cred, Disk, Handle, Listed, Listing, Name, Node, Result, Status};
use comity_xdr::{Decoder, Malformed};

use super::attributes::attr;
use super::remote3::{Remote3, fh};
use super::status::{malformed, status};
use crate::limits::LISTING_BYTES;
use crate::stateless::StatelessReply;

/// A visitor of entries.
pub(super) type EntryVisitor<'v> = dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()> + 'v;

/// Most bytes of names, fileids and cookies in a page, in the proportion to the whole reply that
/// Linux uses.
const NAMES_BYTES: u32 = LISTING_BYTES / 8;

/// The step after a page of a listing.
enum NextPage {
    /// The listing has ended.
    End,
    /// The next page begins after this cookie.
    Page(u64),
}

impl Remote3 {
    pub(super) fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        (mut cookie, wanted): (u64, Listed),
        visit: &mut EntryVisitor<'_>,
    ) -> Result<Attr<Disk>> {
        loop {
            let verifier = self.verifiers.of(dir, cookie);
            let (reply, has_nodes) = self.page(cred, dir, (cookie, verifier), wanted)?;
            let mut results = Decoder::new(reply.results());
            match results.value().map_err(malformed)? {
                Nfsstat3::Ok => {}
                failed => return Err(status(failed)),
            }
            let head: DirlistHead = results.value().map_err(malformed)?;
            self.verifiers.note(dir, head.cookieverf);
            match self.show((cred, cookie), &mut results, has_nodes, visit).map_err(malformed)? {
                NextPage::End => return self.told_or_asked(dir, &head.dir_attributes),
                // A page that makes no progress would be requested forever.
                NextPage::Page(next) if next == cookie => return Err(Status::Io),
                NextPage::Page(next) => cookie = next,
            }
        }
    }

    /// Requests a page; also returns whether its entries have attributes and handles. Falls back to
    /// READDIR if the server lacks READDIRPLUS.
    fn page(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        (cookie, cookieverf): (u64, Cookieverf3),
        wanted: Listed,
    ) -> Result<(StatelessReply, bool)> {
        let (file, maxcount) = (self.file(dir)?, LISTING_BYTES.min(self.transfer_bytes.0));
        let handle = fh(&file);
        if wanted == Listed::Nodes {
            let dircount = NAMES_BYTES.min(maxcount);
            let arguments =
                Readdirplus3args { dir: handle, cookie, cookieverf, dircount, maxcount };
            let reply = self.ask_using((cred, dir), procedure::READDIRPLUS, &arguments)?;
            if reply.results().first_chunk() != Some(&(Nfsstat3::NotSupp as u32).to_be_bytes()) {
                return Ok((reply, true));
            }
        }
        let arguments = Readdir3args { dir: handle, cookie, cookieverf, count: maxcount };
        Ok((self.ask_using((cred, dir), procedure::READDIR, &arguments)?, false))
    }

    /// Passes the entries of a page to the visitor.
    fn show(
        &self,
        (cred, mut next): (&Cred<Disk>, u64),
        results: &mut Decoder<'_>,
        has_nodes: bool,
        visit: &mut EntryVisitor<'_>,
    ) -> std::result::Result<NextPage, Malformed> {
        while results.value::<bool>()? {
            let entry: Entry3<'_> = results.value()?;
            let node = if has_nodes { self.entry_node(cred, results)? } else { None };
            next = entry.cookie;
            // Skip `.` and `..`, and names that might lead out of the directory.
            let Ok(name) = Name::new(entry.name.0) else { continue };
            let listing = Listing { name, fileid: entry.fileid, cookie: entry.cookie, node };
            if visit(&listing).is_break() {
                return Ok(NextPage::End);
            }
        }
        Ok(if results.value()? { NextPage::End } else { NextPage::Page(next) })
    }

    /// Reads attributes and handle of an entry; `None` if the server left one of them out.
    fn entry_node(
        &self,
        cred: &Cred<Disk>,
        results: &mut Decoder<'_>,
    ) -> std::result::Result<Option<Node<Disk>>, Malformed> {
        let told: PostOpAttr = results.value()?;
        let handle = results.value::<Option<NfsFh3<'_>>>()?;
        let handle = handle.and_then(|handle| self.handles.handle(handle.0).ok());
        let node = told.zip(handle).map(|(told, handle)| Node { handle, attr: attr(&told) });
        if let Some(node) = &node {
            self.callers.using(cred, &node.handle);
        }
        Ok(node)
    }
}
