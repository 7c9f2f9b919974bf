use anyhow::{Result, bail, ensure};
use comity_proto::nfs3::{self, DirlistHead, Entryplus3, Nfsstat3, PostOpAttr, Readdirplus3args};
use comity_xdr::Decoder;

use super::calls::fh;
use crate::rpc::{Caller, RESULTS_AT};

/// Most bytes of names, numbers and cookies in a page, in the proportion to the whole page that
/// Linux's client uses.
const DIRCOUNT: u32 = MAXCOUNT / 8;
/// Most bytes of a page.
const MAXCOUNT: u32 = 64 * 1024;

/// A page of a directory.
#[derive(Debug)]
pub struct ListingPage {
    /// The call that requests it, with its record mark.
    pub call: Vec<u8>,
    /// The record of the reply.
    pub reply: Vec<u8>,
    /// Entries in it, `.` and `..` among them.
    pub entries: Vec<Entry>,
}

/// An entry of a listing.
#[derive(Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its handle, if the server sent one.
    pub handle: Option<Vec<u8>>,
}

/// Lists a directory with READDIRPLUS, page by page.
///
/// # Errors
/// A call failed, a name came twice, or a file has no attributes or handle.
pub fn list(caller: &mut Caller, dir: &[u8]) -> Result<Vec<ListingPage>> {
    let mut pages = Vec::new();
    let mut place = (0, [0; 8]);
    loop {
        let arguments = Readdirplus3args {
            dir: fh(dir),
            cookie: place.0,
            cookieverf: place.1,
            dircount: DIRCOUNT,
            maxcount: MAXCOUNT,
        };
        let (call, reply) = caller.nfs(nfs3::procedure::READDIRPLUS, &arguments)?;
        let read = read(&reply)?;
        pages.push(ListingPage { call, reply, entries: read.entries });
        if read.eof {
            break;
        }
        ensure!(read.next.0 != place.0, "a page without entries");
        place = read.next;
    }
    let mut names: Vec<_> = pages.iter().flat_map(|page| &page.entries).map(|e| &e.name).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    ensure!(names.len() == count, "{} names came twice", count - names.len());
    Ok(pages)
}

/// A decoded page, with the cookie and verifier for the next one.
struct Read {
    entries: Vec<Entry>,
    eof: bool,
    next: (u64, [u8; 8]),
}

fn read(reply: &[u8]) -> Result<Read> {
    let mut results = Decoder::new(reply.get(RESULTS_AT..).unwrap_or_default());
    match results.value()? {
        Nfsstat3::Ok => {}
        status => bail!("READDIRPLUS is answered {status:?}"),
    }
    let head: DirlistHead = results.value()?;
    let mut entries = Vec::new();
    let mut next = (0, head.cookieverf);
    while let Some(entry) = results.value::<Option<Entryplus3<'_>>>()? {
        next.0 = entry.entry.cookie;
        entries.push(entry_of(&entry)?);
    }
    let eof = results.value()?;
    results.finish()?;
    Ok(Read { entries, eof, next })
}

fn entry_of(entry: &Entryplus3<'_>) -> Result<Entry> {
    let name = String::from_utf8_lossy(entry.entry.name.0).into_owned();
    let attributes: PostOpAttr = entry.name_attributes;
    let complete = attributes.is_some() && entry.name_handle.is_some();
    ensure!(complete || name.starts_with('.'), "{name} has no attributes or no handle");
    Ok(Entry { name, handle: entry.name_handle.map(|handle| handle.0.to_vec()) })
}
