//! Listings, and the delegations of directories: while one is held no other client changes the
//! directory, so names, missing names, listings and attributes are answered from memory.

use std::ops::ControlFlow;

use comity_vfs::{
    Attr, Cred, Disk, FileType, Handle, Listed, Listing, Node, OpenFiles, Result, Status,
};

use super::Cache;
use crate::counters::count;
use crate::limits::{LISTED_OF_ONE_MAX, LISTED_UNDELEGATED_MAX};
use crate::listing_cache::{KnownEntry, KnownListing};
use crate::verdict_cache::CallerId;

/// A visitor of entries.
pub(super) type ListingVisit<'v> = dyn FnMut(&Listing<'_, Disk>) -> ControlFlow<()> + 'v;

/// The part of a listing that was answered from memory.
enum KnownPart {
    /// All that the visitor wanted.
    All,
    /// The entries up to this cookie; the rest must be fetched.
    UpTo(u64),
}

impl Cache {
    /// Returns whether the cached state of a file or a directory is valid: it is delegated, and was
    /// fetched after the grant.
    pub(super) fn is_granted(&self, files: &dyn OpenFiles, node: &Handle) -> bool {
        if self.attributes.grant(node).is_none() {
            return false;
        }
        self.apply_notices(files);
        let grant = self.attributes.grant(node);
        grant.is_some() && (files.file_grant(node) == grant || files.directory_grant(node) == grant)
    }

    /// Notes that a directory is about to be read, and requests its delegation if it was read often
    /// enough. Returns whether its attributes came with the answer.
    pub(super) fn look_into(&self, dir: &Handle) -> bool {
        // Ignore a failure: the call that follows meets it again.
        self.wants_grant(dir) && self.ask_for_grant(dir).is_ok()
    }

    fn wants_grant(&self, dir: &Handle) -> bool {
        let files = self.fs.open_files();
        files.is_some_and(|files| !self.is_granted(files, dir)) && self.looks.note(dir, self.now())
    }

    /// Requests the delegation of a directory, and its attributes in the same call.
    fn ask_for_grant(&self, dir: &Handle) -> Result<Attr<Disk>> {
        let files = self.fs.open_files().ok_or(Status::NotSupp)?;
        let (asked, early) = (self.attributes.ask(), self.notices.early());
        let answer = files.delegate_directory(dir);
        let grant = answer.as_ref().ok().and_then(|(_, grant)| *grant);
        self.looks.note_answer(dir, self.now(), grant.is_some());
        let (attr, _) = answer?;
        if let Some(grant) = grant {
            self.note_grant((dir, grant), attr, (asked, early), files);
        } else {
            self.note(dir, attr, asked);
        }
        Ok(attr)
    }

    /// Fetches attributes; those of a directory together with its delegation if it was read often
    /// enough.
    pub(super) fn fetch_with_grant(&self, node: &Handle) -> Option<Result<Attr<Disk>>> {
        let wants = self.is_directory(node) && self.wants_grant(node);
        wants.then(|| self.ask_for_grant(node)).filter(|answer| *answer != Err(Status::NotSupp))
    }

    /// Returns whether an object is known to be a directory.
    pub(super) fn is_directory(&self, node: &Handle) -> bool {
        self.attributes.last(node).is_some_and(|attr| attr.file_type == FileType::Directory)
    }

    /// Lists a directory: from memory while its attributes are valid and its entries cached, the
    /// rest from the file system below.
    pub(super) fn list(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        (cookie, wanted): (u64, Listed),
        visit: &mut ListingVisit<'_>,
    ) -> Result<Attr<Disk>> {
        let caller = CallerId::of(cred);
        if let Some(attr) = self.attributes.get(dir, self.now(), self.is_true(dir))
            && let Some(known) = self.listings.get(caller, dir, self.attributes.moment(dir))
            && (self.is_delegated(dir) || self.listings.is_of_server(&known))
        {
            count(&self.counters.spared, 1);
            return match self.show_known(&known, (cookie, wanted), visit) {
                KnownPart::All => Ok(attr),
                KnownPart::UpTo(cookie) => self.list_below(cred, dir, (cookie, wanted), visit),
            };
        }
        self.look_into(dir);
        let most = match (self.is_delegated(dir), wanted) {
            (true, _) => LISTED_OF_ONE_MAX,
            // A caller that wants attributes will look at all objects, one after the other.
            (false, Listed::Nodes) => LISTED_UNDELEGATED_MAX,
            (false, Listed::Names) => 0,
        };
        if cookie != 0 || most == 0 {
            return self.list_below(cred, dir, (cookie, wanted), visit);
        }
        self.list_whole(cred, dir, (wanted, most), visit)
    }

    /// Shows entries while everything wanted about them is cached and valid.
    fn show_known(
        &self,
        known: &KnownListing,
        (cookie, wanted): (u64, Listed),
        visit: &mut ListingVisit<'_>,
    ) -> KnownPart {
        let Some(entries) = known.behind(cookie) else { return KnownPart::UpTo(cookie) };
        let mut last = cookie;
        for entry in entries {
            let node = match wanted {
                Listed::Names => None,
                Listed::Nodes => match self.known_entry(entry) {
                    // An entry that was added a moment ago has no node yet; the caller looks it up
                    // itself.
                    None if self.listings.server_cookie(entry.cookie) == 0 => None,
                    None => return KnownPart::UpTo(last),
                    node => node,
                },
            };
            let (fileid, cookie) = (entry.fileid, entry.cookie);
            let Some(name) = entry.name() else { continue };
            if visit(&Listing { name, fileid, cookie, node }).is_break() {
                break;
            }
            last = entry.cookie;
        }
        KnownPart::All
    }

    fn known_entry(&self, entry: &KnownEntry) -> Option<Node<Disk>> {
        let handle = entry.node?;
        let attr = self.attributes.get(&handle, self.now(), self.is_true(&handle))?;
        Some(Node { handle, attr: self.shown(&handle, attr) })
    }

    fn list_below(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        (cookie, wanted): (u64, Listed),
        visit: &mut ListingVisit<'_>,
    ) -> Result<Attr<Disk>> {
        let begun = (self.attributes.ask(), self.attributes.moment(dir));
        let cookie = self.listings.server_cookie(cookie);
        let attr = self.fs.readdir(cred, dir, cookie, wanted, &mut |entry| {
            visit(&self.note_listed(cred, dir, entry, begun))
        })?;
        self.note(dir, attr, begun.0);
        Ok(attr)
    }

    /// Lists a directory to its end or to `most` entries, even if the visitor stops early, and
    /// caches the listing if it has reached the end.
    fn list_whole(
        &self,
        cred: &Cred<Disk>,
        dir: &Handle,
        (wanted, most): (Listed, usize),
        visit: &mut ListingVisit<'_>,
    ) -> Result<Attr<Disk>> {
        let (moment, mut found, mut is_whole) = (self.attributes.moment(dir), Vec::new(), true);
        let attr = self.list_below(cred, dir, (0, wanted), &mut |entry| {
            is_whole = found.len() < most;
            if is_whole {
                found.push((known(entry), entry.node));
                return ControlFlow::Continue(());
            }
            ControlFlow::Break(())
        })?;
        let last = found.last().map_or(0, |(entry, _)| entry.cookie);
        let shown = show_all(&found, visit);
        let entries = found.into_iter().map(|(entry, _)| entry).collect();
        if is_whole && self.attributes.moment(dir) == moment {
            self.listings.note(CallerId::of(cred), dir, KnownListing { moment, entries });
        }
        if is_whole || shown.is_break() {
            return Ok(attr);
        }
        self.list_below(cred, dir, (last, wanted), visit)
    }
}

fn show_all(
    found: &[(KnownEntry, Option<Node<Disk>>)],
    visit: &mut ListingVisit<'_>,
) -> ControlFlow<()> {
    for (entry, node) in found {
        let KnownEntry { fileid, cookie, .. } = *entry;
        if let Some(name) = entry.name() {
            visit(&Listing { name, fileid, cookie, node: *node })?;
        }
    }
    ControlFlow::Continue(())
}

fn known(entry: &Listing<'_, Disk>) -> KnownEntry {
    let Listing { name, fileid, cookie, node } = *entry;
    KnownEntry { name: name.bytes().into(), fileid, cookie, node: node.map(|node| node.handle) }
}
