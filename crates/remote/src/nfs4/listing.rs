use std::io::{Error, Result as IoResult};

use comity_proto::nfs4::{
    Bitmap4, Entry4, Fattr4, Readdir4args, Verifier4, attribute, operation as op,
};
use comity_xdr::{Decode, Decoder, Malformed};

use super::attributes::{ENTRY, metadata};
use super::compound::Compound;
use super::session::{Session, Wire};
use crate::file::Entry;

/// Most bytes of a page.
const PAGE_BYTES: u32 = 64 * 1024;
/// Most bytes of names and cookies in a page, in the proportion to the whole page that Linux's
/// client uses.
const NAMES_BYTES: u32 = PAGE_BYTES / 8;

/// A page of a directory.
pub struct ListingPage {
    /// The cookie verifier.
    pub verifier: Verifier4,
    /// The entries without `.` and `..`.
    pub entries: Vec<Entry>,
    /// The cookie of the next page.
    pub cookie: u64,
    /// True for the last page.
    pub eof: bool,
}

impl<'a> Decode<'a> for ListingPage {
    fn decode(decoder: &mut Decoder<'a>) -> Result<Self, Malformed> {
        let verifier = decoder.value()?;
        let (mut entries, mut cookie) = (Vec::new(), 0);
        while decoder.value::<bool>()? {
            let (entry, fattr): (Entry4<'a>, Fattr4<'a>) = (decoder.value()?, decoder.value()?);
            cookie = entry.cookie;
            let name = String::from_utf8_lossy(entry.name.0).into_owned();
            let known = fattr.attrmask.contains(attribute::TYPE);
            let metadata = if known { Some(metadata(&fattr)?) } else { None };
            entries.push(Entry { name, metadata });
        }
        Ok(Self { verifier, entries, cookie, eof: decoder.value()? })
    }
}

/// The COMPOUND that requests the page after a cookie.
pub fn page_of(dir: &[u8], place: (u64, Verifier4), attributes: bool) -> Compound {
    let none = Bitmap4::of(&[attribute::RDATTR_ERROR]);
    let arguments = Readdir4args {
        cookie: place.0,
        cookieverf: place.1,
        dircount: NAMES_BYTES,
        maxcount: PAGE_BYTES,
        attr_request: if attributes { ENTRY } else { none },
    };
    Compound::on(dir).with(op::READDIR, &arguments)
}

/// Lists a directory, with attributes if they are wanted.
///
/// # Errors
/// An error of the server, or a page that makes no progress.
pub fn list<W: Wire>(
    session: &mut Session<W>,
    dir: &[u8],
    attributes: bool,
) -> IoResult<Vec<Entry>> {
    let (mut entries, mut place) = (Vec::new(), (0, Verifier4::default()));
    loop {
        let reply = session.perform(&page_of(dir, place, attributes))?;
        let page: ListingPage = reply.on_object()?.next(op::READDIR)?;
        let (next, is_empty) = ((page.cookie, page.verifier), page.entries.is_empty());
        entries.extend(page.entries);
        if page.eof {
            break;
        }
        if is_empty || next.0 == place.0 {
            return Err(Error::other("a page of a directory without entries"));
        }
        place = next;
    }
    let unknown = attributes && entries.iter().any(|entry| entry.metadata.is_none());
    if unknown {
        return Err(Error::other("entries of a directory without the attributes asked for"));
    }
    Ok(entries)
}
