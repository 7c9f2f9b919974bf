//! What two real folders can be compared by: their numbers, handles and times differ.

use comity_proto::nfs3::{DirlistHead, Entry3, Entryplus3, Nfsstat3, procedure};
use comity_xdr::Decoder;

/// The status, and the names of a listing in an order of their own.
pub(crate) fn gist(called: u32, body: &[u8]) -> Vec<u8> {
    let plus = called == procedure::READDIRPLUS;
    let status = body[..4].to_vec();
    if (called != procedure::READDIR && !plus) || status != [0; 4] {
        return status;
    }
    let mut decoder = Decoder::new(body);
    decoder.value::<Nfsstat3>().unwrap();
    decoder.value::<DirlistHead>().unwrap();
    let mut names = Vec::new();
    while decoder.value::<bool>().unwrap() {
        let entry: Entry3<'_> = match plus {
            true => decoder.value::<Entryplus3<'_>>().unwrap().entry,
            false => decoder.value().unwrap(),
        };
        names.push(entry.name.0.to_vec());
    }
    names.sort();
    names.concat()
}
