use std::io::{Error, Result as IoResult};

use comity_proto::nfs3::{
    DirlistHead, Entry3, Entryplus3, Nfsstat3, PostOpAttr, Readdir3args, Readdirplus3args,
    procedure,
};
use comity_remote::nfs3::fh;
use comity_remote::rpc::{RESULTS_AT, call_error};
use comity_xdr::{Decode, Decoder};

use super::{NfsFiles, failure, metadata};
use crate::suite::{Entry, Files};

/// Most bytes of a page.
const PAGE_BYTES: u32 = 64 * 1024;
/// Most bytes of names, numbers and cookies in it, in the proportion the Linux client uses.
const NAMES_BYTES: u32 = PAGE_BYTES / 8;

/// A page of a directory as it was decoded.
struct Page {
    entries: Vec<Entry>,
    cookie: u64,
    verifier: [u8; 8],
    eof: bool,
}

impl NfsFiles {
    /// All entries, by READDIR.
    pub(super) fn readdir(&mut self, dir: &[u8]) -> IoResult<Vec<Entry>> {
        self.pages(
            procedure::READDIR,
            |cookie, cookieverf| Readdir3args {
                dir: fh(dir),
                cookie,
                cookieverf,
                count: PAGE_BYTES,
            },
            |results| page::<Entry3<'_>>(results),
        )
    }

    /// All entries with their attributes, by READDIRPLUS; where a server leaves them out, by
    /// LOOKUP.
    pub(super) fn readdirplus(&mut self, dir: &[u8], path: &str) -> IoResult<Vec<Entry>> {
        let (dircount, maxcount) = (NAMES_BYTES, PAGE_BYTES);
        let mut entries = self.pages(
            procedure::READDIRPLUS,
            |cookie, cookieverf| Readdirplus3args {
                dir: fh(dir),
                cookie,
                cookieverf,
                dircount,
                maxcount,
            },
            |results| page::<Entryplus3<'_>>(results),
        )?;
        for entry in entries.iter_mut().filter(|entry| entry.metadata.is_none()) {
            entry.metadata = Some(self.lookup(&format!("{path}/{}", entry.name))?);
        }
        Ok(entries)
    }

    fn pages<A: comity_xdr::Encode>(
        &mut self,
        procedure: u32,
        arguments: impl Fn(u64, [u8; 8]) -> A,
        decode: impl Fn(&[u8]) -> IoResult<Page>,
    ) -> IoResult<Vec<Entry>> {
        let (mut entries, mut cookie, mut verifier) = (Vec::new(), 0, [0; 8]);
        loop {
            let reply = self.call(procedure, &arguments(cookie, verifier))?;
            let page = decode(&reply[RESULTS_AT..])?;
            let stuck = page.cookie == 0 || page.cookie == cookie;
            entries.extend(page.entries);
            if page.eof {
                return Ok(entries);
            }
            if stuck {
                return Err(Error::other("a page of a directory without entries"));
            }
            (cookie, verifier) = (page.cookie, page.verifier);
        }
    }
}

/// The fields of an entry in READDIR and READDIRPLUS.
trait Listed<'a>: Decode<'a> {
    fn parts(&self) -> (&Entry3<'a>, PostOpAttr);
}

impl<'a> Listed<'a> for Entry3<'a> {
    fn parts(&self) -> (&Entry3<'a>, PostOpAttr) {
        (self, None)
    }
}

impl<'a> Listed<'a> for Entryplus3<'a> {
    fn parts(&self) -> (&Entry3<'a>, PostOpAttr) {
        (&self.entry, self.name_attributes)
    }
}

fn page<'a, L: Listed<'a>>(results: &'a [u8]) -> IoResult<Page> {
    let mut decoder = Decoder::new(results);
    read_page::<L>(&mut decoder).map_err(|error| call_error(&error.into())).and_then(|page| page)
}

fn read_page<'a, L: Listed<'a>>(
    decoder: &mut Decoder<'a>,
) -> Result<IoResult<Page>, comity_xdr::Malformed> {
    match decoder.value()? {
        Nfsstat3::Ok => {}
        status => return Ok(Err(failure(status))),
    }
    let head: DirlistHead = decoder.value()?;
    let (mut entries, mut cookie) = (Vec::new(), 0);
    while let Some(listed) = decoder.value::<Option<L>>()? {
        let (entry, attributes) = listed.parts();
        cookie = entry.cookie;
        if !matches!(entry.name.0, b"." | b"..") {
            let name = String::from_utf8_lossy(entry.name.0).into_owned();
            entries.push(Entry { name, metadata: attributes.as_ref().map(metadata) });
        }
    }
    let eof = decoder.value()?;
    decoder.finish()?;
    Ok(Ok(Page { entries, cookie, verifier: head.cookieverf, eof }))
}
