//! The common part of READDIR and READDIRPLUS: pages of entries, written one after the other into
//! the reply until one does not fit.

mod page;

use std::ops::ControlFlow;

use comity_export::{ListingPart, Node, Position, Seen, View};
use comity_proto::nfs3::{Cookieverf3, DirlistHead, Fattr3, Nfsstat3};
use comity_rpc::Done;
use comity_vfs::{Attr, Listed, Result, Status, Wire, run_through};
use comity_xdr::Encoder;

use self::page::Page;
use crate::attributes::{attributes_now, fattr3};
use crate::limits::LISTING_BYTES_MAX;
use crate::program::Nfs3;
use crate::reply::{Answer, fail};

/// The verifier of all cookies: they stay valid when the directory changes. It is zero, so that
/// a client that ignores the verifier is right, too.
const COOKIEVERF: Cookieverf3 = [0; 8];

/// Bytes before the entries: attributes and verifier.
const HEAD_BYTES: usize = (4 + Fattr3::BYTES) + 8;

/// The arguments of a listing.
pub(crate) struct Wanted {
    /// The cookie of the entry after which the page begins; 0 for the first entry.
    pub(crate) cookie: u64,
    /// The verifier that came with the cookie.
    pub(crate) cookieverf: Cookieverf3,
    /// Most bytes of the result after the status.
    pub(crate) bytes_max: u32,
    /// Most bytes of numbers, names and cookies. A page has one entry even if that entry is
    /// longer.
    pub(crate) names_max: u32,
    /// The detail of each entry: with or without handle and attributes.
    pub(crate) listed: Listed,
}

/// Appends a page, or the failure that stands for it.
pub(crate) fn answer(
    nfs: &Nfs3,
    reply: &mut Encoder,
    (view, dir): (&View<'_>, &Node),
    wanted: &Wanted,
) -> Answer {
    let start = reply.checkpoint();
    match list(nfs, reply, (view, dir), wanted) {
        Ok(()) => Answer::new(Done { status: 0, export: Some(view.export_id().0) }),
        Err(status) => {
            reply.rollback(start);
            fail(reply, view, status, &attributes_now(view, dir))
        }
    }
}

fn list(
    nfs: &Nfs3,
    reply: &mut Encoder,
    (view, dir): (&View<'_>, &Node),
    wanted: &Wanted,
) -> Result<()> {
    if wanted.cookie != 0 && wanted.cookieverf != COOKIEVERF {
        return Err(Status::BadCookie);
    }
    let position = Position::from_wire(wanted.cookie);
    reply.value(&Nfsstat3::Ok);
    let start = reply.checkpoint();
    let head = reply.reserve::<{ HEAD_BYTES }>();
    let bytes_max = wanted.bytes_max.min(LISTING_BYTES_MAX) as usize;
    let most = (bytes_max, wanted.names_max as usize);
    let mut page = Page::new(nfs, (reply, start), most, wanted.listed);
    dots(&mut page, view, dir, position)?;
    let attr = entries(nfs, &mut page, (view, dir), position)?;
    page.end()?;
    let dir_attributes = Some(fattr3(&attr));
    let told = DirlistHead { dir_attributes, cookieverf: COOKIEVERF };
    reply.fill(head, |reply| reply.value(&told));
    Ok(())
}

/// The directory itself and its parent come first. If the parent cannot be looked at, it is
/// left out: a wrong number would be worse than none.
fn dots(page: &mut Page<'_>, view: &View<'_>, dir: &Node, from: Position) -> Result<()> {
    if from == Position::Start {
        let seen = Seen { node: *dir, attr: view.getattr(dir)? };
        let _ = page.dot(view, b".", &seen, Position::Dot);
    }
    if matches!(from, Position::Start | Position::Dot)
        && let Ok(seen) = view.parent(dir)
    {
        let _ = page.dot(view, b"..", &seen, Position::DotDot);
    }
    Ok(())
}

/// The backend is asked even if there is no room left: only the backend knows whether the
/// caller may list. A page without entries is never sent before the end of the directory:
/// clients take it for the end, or ask for it again for ever.
fn entries(
    nfs: &Nfs3,
    page: &mut Page<'_>,
    (view, dir): (&View<'_>, &Node),
    from: Position,
) -> Result<Attr<Wire>> {
    let mut part = part(page, view, dir, from.behind())?;
    if let Some(cookie) = part.rest.filter(|_| page.awaits_entry()) {
        part = run_through(nfs.blocking_hook(), || rest(page, view, dir, cookie))?;
    }
    if part.rest.is_some() {
        page.cut();
    }
    Ok(part.dir)
}

/// Goes on after many hidden entries until the page has an entry.
fn rest(page: &mut Page<'_>, view: &View<'_>, dir: &Node, mut behind: u64) -> Result<ListingPart> {
    loop {
        let part = part(page, view, dir, behind)?;
        match part.rest {
            Some(cookie) if page.awaits_entry() => behind = cookie,
            _ => return Ok(part),
        }
    }
}

/// Appends the entries of a part of the directory.
fn part(page: &mut Page<'_>, view: &View<'_>, dir: &Node, behind: u64) -> Result<ListingPart> {
    let listed = page.listed();
    view.readdir(dir, behind, listed, &mut |listing, seen| match page.is_full() {
        true => ControlFlow::Break(()),
        false => page.entry(view, listing, seen),
    })
}
