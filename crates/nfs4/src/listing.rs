//! READDIR: entries are appended to the reply one after the other until one does not fit.

use std::ops::ControlFlow;

use comity_export::{Found, Node, Position, Pseudo, PseudoNode, Seen, View};
use comity_proto::nfs4::{Bitmap4, Entry4, Nfsstat4, Readdir4args, attribute as a};
use comity_vfs::{Attr, Disk, FileType, Listed, Listing, Wire, run_through};
use comity_xdr::{Checkpoint, Encoder, Opaque, padding};

use crate::attributes::{Subject, What, absent_entry, fattr4};
use crate::compound::Compound;
use crate::filehandle::Object;
use crate::limits::{COOKIEVERF, LISTING_BYTES_MAX};
use crate::stop::Stop;

/// Bytes after the entries: the end of the list, and the flag for the end of the directory.
const TAIL_BYTES: usize = 4 + 4;

/// Attributes of an entry that are known without its object.
const BY_NAME: Bitmap4 = Bitmap4::of(&[a::RDATTR_ERROR]);

/// Attributes of an entry that change, of which clients may be notified.
const CHANGING: Bitmap4 = Bitmap4::of(&[
    a::CHANGE,
    a::SIZE,
    a::NUMLINKS,
    a::SPACE_USED,
    a::TIME_METADATA,
    a::TIME_MODIFY,
]);

/// Appends a page of the current directory.
pub(crate) fn list(
    compound: &Compound<'_>,
    args: &Readdir4args,
    reply: &mut Encoder,
) -> Result<(), Stop> {
    let from = Position::from_wire(args.cookie);
    if matches!(from, Position::Dot | Position::DotDot)
        || from != Position::Start && args.cookieverf != COOKIEVERF
    {
        return Err(Nfsstat4::BadCookie.into());
    }
    let start = reply.checkpoint();
    reply.value(&COOKIEVERF);
    let room = compound.room(reply).min(LISTING_BYTES_MAX as usize);
    let bytes_max = room.min(args.maxcount as usize);
    let names_left = if args.dircount == 0 { usize::MAX } else { args.dircount as usize };
    let wanted = args.attr_request;
    let (entries, full, stopped) = (0, false, None);
    let mut page =
        Page { compound, reply, start, bytes_max, names_left, wanted, entries, full, stopped };
    match compound.object()? {
        Object::Pseudo(node) => above(&mut page, *node, from)?,
        Object::In(view, node) => inside(&mut page, view, node, from)?,
        Object::Absent(_) => return Err(Nfsstat4::Moved.into()),
    }
    page.end()
}

/// Lists a directory above the exports. The cookie of an entry is its number, reduced to the range
/// of cookies.
fn above<'a>(page: &mut Page<'_, 'a>, dir: PseudoNode<'a>, from: Position) -> Result<(), Stop> {
    let pseudo = page.compound.pseudo();
    let children = pseudo.children(dir)?;
    let cookie = |found: &Found<'_>| (fileid(found) >> 2).max(1);
    let mut children: Vec<_> =
        children.iter().map(|(name, found)| (cookie(found), *name, found)).collect();
    children.sort_unstable_by_key(|(cookie, name, _)| (*cookie, *name));
    for (cookie, name, found) in children.into_iter().filter(|child| child.0 > from.behind()) {
        let at = (Position::Entry(cookie).to_wire(), name);
        let flow = match found {
            Found::Pseudo(node) => {
                let (what, attr) = (What::Pseudo(*node), pseudo.attr(*node));
                page.entry(at, &page.subject(what, attr, Some(attr.fileid)))
            }
            Found::Export(export) => page.export(at, export, fileid(found)),
        };
        if flow.is_break() {
            break;
        }
    }
    Ok(())
}

fn fileid(found: &Found<'_>) -> u64 {
    match found {
        Found::Pseudo(node) => node.fileid(),
        Found::Export(export) => export.path_number(),
    }
}

/// Lists a directory of an export. A page without entries must also be the end of the directory:
/// clients would take it for the end, or repeat the request for ever.
fn inside<'a>(
    page: &mut Page<'_, 'a>,
    view: &View<'a>,
    dir: &Node,
    from: Position,
) -> Result<(), Stop> {
    let hook = page.compound.nfs.blocking_hook();
    let mut next = part(page, view, dir, from.behind())?;
    if let Some(behind) = next.filter(|_| page.awaits_entry()) {
        next = run_through(hook, || rest(page, view, dir, behind))?;
    }
    page.full |= next.is_some();
    Ok(())
}

/// Goes on after many hidden entries until the page has an entry.
fn rest<'a>(
    page: &mut Page<'_, 'a>,
    view: &View<'a>,
    dir: &Node,
    behind: u64,
) -> Result<Option<u64>, Stop> {
    let mut next = Some(behind);
    while let Some(behind) = next.filter(|_| page.awaits_entry()) {
        next = part(page, view, dir, behind)?;
    }
    Ok(next)
}

/// Appends the entries of a part of the directory; returns the cookie after which there are more.
fn part<'a>(
    page: &mut Page<'_, 'a>,
    view: &View<'a>,
    dir: &Node,
    behind: u64,
) -> Result<Option<u64>, Stop> {
    let pseudo = page.compound.pseudo();
    let listed = if page.is_by_name() { Listed::Names } else { Listed::Nodes };
    let tells_changes = !page.wanted.and(&CHANGING).is_empty();
    let record = page.compound.child_record(view, dir).filter(|_| tells_changes);
    let mut visit = |listing: &Listing<'_, Disk>, seen: Option<&Seen>| {
        if page.full {
            return ControlFlow::Break(());
        }
        if let (Some(record), Some(seen)) = (&record, seen) {
            record.note(view, listing.name.bytes(), &seen.node);
        }
        page.found(view, &pseudo, listing, seen)
    };
    Ok(view.readdir(dir, behind, listed, &mut visit)?.rest)
}

/// The cookie of an entry, and its name.
type At<'n> = (u64, &'n [u8]);

/// A page under construction, never longer than the client allows.
struct Page<'p, 'a> {
    compound: &'p Compound<'a>,
    reply: &'p mut Encoder,
    start: Checkpoint,
    bytes_max: usize,
    names_left: usize,
    wanted: Bitmap4,
    entries: usize,
    full: bool,
    /// The failure of the next entry, if it must not be left out.
    stopped: Option<Nfsstat4>,
}

impl<'p, 'a> Page<'p, 'a> {
    /// Returns whether the requested attributes are known from the names alone. They are not if an
    /// entry may be the root of an absent file system.
    fn is_by_name(&self) -> bool {
        self.wanted.is_within(&BY_NAME) && !self.compound.plan.refers()
    }

    /// Returns whether the page has no entries yet, and has room.
    const fn awaits_entry(&self) -> bool {
        self.entries == 0 && !self.full
    }

    fn subject<'s>(
        &self,
        what: What<'s, 'a>,
        attr: Attr<Wire>,
        mounted_on_fileid: Option<u64>,
    ) -> Subject<'s, 'a>
    where
        'p: 's,
    {
        Subject { compound: self.compound, what, attr, mounted_on_fileid, listed: true }
    }

    /// Appends an entry of an export's directory. If an export is mounted on the entry, that
    /// export's root is shown instead.
    fn found(
        &mut self,
        view: &View<'a>,
        pseudo: &Pseudo<'a>,
        listing: &Listing<'_, Disk>,
        seen: Option<&Seen>,
    ) -> ControlFlow<()> {
        let name = listing.name.bytes();
        let at = (Position::Entry(listing.cookie).to_wire(), name);
        let Some(seen) = seen else {
            // Without its object an entry cannot be entered, so its name tells all.
            let is_by_name = self.wanted.is_within(&BY_NAME);
            return if is_by_name { self.bare(at, Nfsstat4::Ok) } else { self.gone(at) };
        };
        let is_dir = seen.attr.file_type == FileType::Directory;
        let covering = if is_dir { view.covering(pseudo, &seen.node, name) } else { Ok(None) };
        match covering {
            Ok(Some(export)) => self.export(at, export, seen.attr.fileid),
            Ok(None) => {
                let what = What::In(view, &seen.node);
                self.entry(at, &self.subject(what, seen.attr, Some(seen.attr.fileid)))
            }
            Err(_) => self.gone(at),
        }
    }

    /// Appends an entry with its attributes, if all of it fits.
    fn entry(&mut self, at: At<'_>, subject: &Subject<'_, 'a>) -> ControlFlow<()> {
        let wanted = self.wanted;
        let failed = self.append(at, |reply| fattr4(reply, subject, &wanted));
        self.or_error(at, failed)
    }

    /// Appends the root of an export that is mounted on `covered`.
    fn export(
        &mut self,
        at: At<'_>,
        export: &comity_export::Export,
        covered: u64,
    ) -> ControlFlow<()> {
        let (compound, wanted) = (self.compound, self.wanted);
        let failed = self.append(at, |reply| match compound.enter_export(export)? {
            Object::In(view, node) => {
                let (attr, what) = (view.getattr(&node)?, What::In(&view, &node));
                let (mounted_on_fileid, listed) = (Some(covered), true);
                let top = Subject { compound, what, attr, mounted_on_fileid, listed };
                fattr4(reply, &top, &wanted)
            }
            Object::Absent(absent) => absent_entry(reply, (compound, &absent), &wanted),
            Object::Pseudo(_) => Err(Nfsstat4::ServerFault.into()),
        });
        self.or_error(at, failed)
    }

    /// Appends an entry whose object is not accessible.
    fn gone(&mut self, at: At<'_>) -> ControlFlow<()> {
        if self.wanted.contains(a::RDATTR_ERROR) {
            self.bare(at, Nfsstat4::Io)
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Appends an entry with no attribute but the error (`rdattr_error`).
    fn bare(&mut self, at: At<'_>, status: Nfsstat4) -> ControlFlow<()> {
        let said = self.wanted.and(&BY_NAME);
        let appended = self.append(at, |reply| {
            reply.value(&said);
            let bytes = if said.is_empty() { 0 } else { 4_u32 };
            reply.value(&bytes);
            if bytes > 0 {
                reply.value(&status);
            }
            Ok(())
        });
        // `rdattr_error` alone cannot fail.
        debug_assert!(appended.is_ok(), "an entry of which nothing is told");
        self.flow()
    }

    /// Handles a failure to read an entry's attributes. If the client requested `rdattr_error`, the
    /// entry contains the error; otherwise the entry is left out. DELAY ends the page, and so does
    /// the root of an absent file system (RFC 8881, 11.4.2).
    fn or_error(&mut self, at: At<'_>, outcome: Result<(), Stop>) -> ControlFlow<()> {
        match outcome {
            Err(Stop::Status(status)) if self.wanted.contains(a::RDATTR_ERROR) => {
                self.bare(at, status)
            }
            Err(Stop::Status(status @ (Nfsstat4::Delay | Nfsstat4::Moved))) => {
                (self.full, self.stopped) = (true, Some(status));
                self.flow()
            }
            _ => self.flow(),
        }
    }

    const fn flow(&self) -> ControlFlow<()> {
        if self.full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn append(
        &mut self,
        (cookie, name): At<'_>,
        attributes: impl FnOnce(&mut Encoder) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let begin = self.reply.checkpoint();
        let bytes = 8 + 4 + name.len() + padding(name.len());
        self.reply.value(&true);
        self.reply.value(&Entry4 { cookie, name: Opaque(name) });
        if let Err(why) = attributes(self.reply) {
            self.reply.rollback(begin);
            return Err(why);
        }
        let is_too_long = self.reply.length_since(self.start) + TAIL_BYTES > self.bytes_max;
        if is_too_long || self.entries > 0 && bytes > self.names_left {
            self.reply.rollback(begin);
            self.full = true;
            return Ok(());
        }
        self.names_left = self.names_left.saturating_sub(bytes);
        self.entries += 1;
        Ok(())
    }

    /// Ends the page. Fails with TOOSMALL if there is no room for its end, or for any of the
    /// entries.
    fn end(self) -> Result<(), Stop> {
        let room = self.reply.length_since(self.start) + TAIL_BYTES <= self.bytes_max;
        if let Some(status) = self.stopped.filter(|_| self.entries == 0) {
            return Err(status.into());
        }
        if !room || self.full && self.entries == 0 {
            return Err(Nfsstat4::TooSmall.into());
        }
        self.reply.value(&false);
        self.reply.value(&!self.full);
        Ok(())
    }
}
