//! The calls of `ls -lR` in one directory: its attributes, its entries, the attributes of each.

use anyhow::{Result, ensure};
use comity_proto::nfs3::{DirlistHead, Entryplus3, Nfsstat3, Readdirplus3args, procedure};
use comity_xdr::{Decoder, Opaque};

use crate::calls::nfs;
use crate::stack::Stack;

/// Bytes of a page, and of the names in it, as clients ask for them.
const PAGE_BYTES: u32 = 32 << 10;
const NAMES_BYTES: u32 = 8 << 10;

/// The records of one walk, in order.
pub(crate) struct Walk {
    stack: Stack,
    listing: Vec<Vec<u8>>,
    attributes: Vec<Vec<u8>>,
}

impl Walk {
    /// Walks once to find out what a client asks for; `count` entries must be seen.
    pub(crate) fn new(mut stack: Stack, dir: &[u8], count: usize) -> Result<Self> {
        let mut listing = vec![nfs(procedure::GETATTR, &Opaque::<64>(dir))];
        stack.results(&mut listing[0])?;
        let (mut attributes, mut cookie) = (Vec::new(), 0);
        loop {
            let arguments = Readdirplus3args {
                dir: Opaque(dir),
                cookie,
                cookieverf: [0; 8],
                dircount: NAMES_BYTES,
                maxcount: PAGE_BYTES,
            };
            let mut record = nfs(procedure::READDIRPLUS, &arguments);
            let reply = stack.results(&mut record)?;
            listing.push(record);
            let (last, eof) = page(&reply, &mut attributes)?;
            if eof {
                break;
            }
            cookie = last;
        }
        // `.` and `..` do not count as entries.
        let seen = attributes.len() - 2;
        ensure!(seen == count, "{seen} entries are seen, not {count}");
        Ok(Self { stack, listing, attributes: attributes.split_off(2) })
    }

    /// Makes the calls of the listing alone.
    pub(crate) fn list(&mut self) -> Result<()> {
        self.listing.iter_mut().try_for_each(|record| self.stack.answer(record))
    }

    /// Makes the calls of the whole walk.
    pub(crate) fn walk(&mut self) -> Result<()> {
        self.list()?;
        self.attributes.iter_mut().try_for_each(|record| self.stack.answer(record))
    }
}

/// Reads a page: a GETATTR for each entry, the last cookie, and whether the directory ends here.
fn page(reply: &[u8], attributes: &mut Vec<Vec<u8>>) -> Result<(u64, bool)> {
    let mut decoder = Decoder::new(reply);
    ensure!(decoder.value::<Nfsstat3>()? == Nfsstat3::Ok, "READDIRPLUS fails");
    decoder.value::<DirlistHead>()?;
    let mut cookie = 0;
    while decoder.value::<bool>()? {
        let entry = decoder.value::<Entryplus3<'_>>()?;
        cookie = entry.entry.cookie;
        ensure!(entry.name_attributes.is_some(), "an entry without attributes");
        let handle = entry.name_handle.map_or(&[][..], |handle| handle.0);
        attributes.push(nfs(procedure::GETATTR, &Opaque::<64>(handle)));
    }
    Ok((cookie, decoder.value()?))
}
