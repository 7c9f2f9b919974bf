//! The comparable part of replies about two real folders, whose fileids, handles and times differ.

use comity_proto::nfs3::{DirlistHead, Entry3, Entryplus3, Nfsstat3, procedure};
use comity_xdr::Decoder;

/// The status, and the sorted names of a listing.
pub(crate) fn gist(called: u32, body: &[u8]) -> Vec<u8> {
    let plus = called == procedure::READDIRPLUS;
    let mut gist = body[..4].to_vec();
    if called == procedure::READDIR || plus {
        let mut names = names(body, plus);
        names.sort();
        gist.extend(names.concat());
    }
    gist
}

/// The names in a listing; none if it was refused.
pub(crate) fn names(body: &[u8], plus: bool) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::new(body);
    if decoder.value::<Nfsstat3>().unwrap() != Nfsstat3::Ok {
        return Vec::new();
    }
    decoder.value::<DirlistHead>().unwrap();
    let mut names = Vec::new();
    while decoder.value::<bool>().unwrap() {
        let entry: Entry3<'_> = match plus {
            true => decoder.value::<Entryplus3<'_>>().unwrap().entry,
            false => decoder.value().unwrap(),
        };
        names.push(entry.name.0.to_vec());
    }
    names
}
