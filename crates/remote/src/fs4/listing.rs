//! Listing a directory.

use std::ops::ControlFlow;

use comity_proto::nfs4::{Entry4, Fattr4, Readdir4args, Verifier4, operation as op};
use comity_vfs::{Attr, Cred, Disk, Handle, Listed, Listing, Name, Result, Status};
use comity_xdr::Malformed;

use super::attributes::{ENTRY, ENTRY_NAME, KnownAttributes, OBJECT};
use super::remote4::{Remote4, malformed};
use crate::compound::OpResults;
use crate::limits::LISTING_BYTES;

/// A visitor of entries.
pub(super) type Visit<'v> = dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()> + 'v;

/// The step after a page of a listing.
enum Next {
    /// The listing has ended.
    End,
    /// The next page begins after this cookie.
    Page(u64),
}

impl Remote4 {
    pub(super) fn readdir(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        (mut cookie, wanted): (u64, Listed),
        visit: &mut Visit<'_>,
    ) -> Result<Attr<Disk>> {
        loop {
            let call = self.call(cred, dir)?.op(op::GETATTR, &OBJECT);
            let arguments = Readdir4args {
                cookie,
                cookieverf: self.verifiers.of(dir, cookie),
                dircount: LISTING_BYTES,
                maxcount: LISTING_BYTES.min(self.transfer_bytes.0),
                attr_request: if wanted == Listed::Nodes { ENTRY } else { ENTRY_NAME },
            };
            let reply = self.perform(call.op(op::READDIR, &arguments))?;
            let mut results = reply.results();
            results.status(op::PUTFH)?;
            let attr = self.attr(&mut results)?;
            let verifier: Verifier4 = results.next(op::READDIR)?;
            self.verifiers.note(dir, verifier);
            match self.show(cred, &mut results, visit).map_err(malformed)? {
                Next::End => return Ok(attr),
                // A page that makes no progress would be requested forever.
                Next::Page(next) if next == cookie => return Err(Status::Io),
                Next::Page(next) => cookie = next,
            }
        }
    }

    /// Passes the entries of a page to the visitor.
    fn show(
        &self,
        cred: &Cred<Disk>,
        results: &mut OpResults<'_>,
        visit: &mut Visit<'_>,
    ) -> std::result::Result<Next, Malformed> {
        let mut next = 0;
        while results.body::<bool>()? {
            let entry: Entry4<'_> = results.body()?;
            let known = KnownAttributes::decode(&results.body::<Fattr4<'_>>()?, &self.owners)?;
            next = entry.cookie;
            // Skip names that no entry may have: they might lead out of the directory.
            let Ok(name) = Name::new(entry.name.0) else { continue };
            let node = known.node(&self.handles);
            if let Some(node) = &node {
                self.callers.using(cred, &node.handle);
            }
            let (fileid, cookie) = (known.listed_fileid(), entry.cookie);
            if visit(&Listing { name, fileid, cookie, node }).is_break() {
                return Ok(Next::End);
            }
        }
        Ok(if results.body()? { Next::End } else { Next::Page(next) })
    }
}
