//! The server that serves a file, as a client finds it out.

use comity_proto::nfs4::{Bitmap4, Fattr4, FsLocations4, Nfsstat4, attribute, operation as op};
use comity_xdr::Decoder;

use super::four::{Four, operation, result, skip};
use super::placed::on;

/// Asks for the file number by a handle.
pub fn fileid(client: &mut Four, handle: &[u8]) -> Result<(), Nfsstat4> {
    let wanted = Bitmap4::of(&[attribute::FILEID]);
    client.perform(on(handle, operation(op::GETATTR, &wanted))).map(drop)
}

/// The server that a client is referred to when it asks for the locations of a handle.
pub fn location(client: &mut Four, handle: &[u8]) -> Option<String> {
    let wanted = Bitmap4::of(&[attribute::FS_LOCATIONS]);
    let results = client.perform(on(handle, operation(op::GETATTR, &wanted))).unwrap();
    let mut results = Decoder::new(&results);
    skip(&mut results);
    let attributes: Fattr4<'_> = result(&mut results);
    let locations: FsLocations4<'_> = Decoder::new(attributes.attr_vals.0).value().unwrap();
    let server = locations.locations.0.first()?.server.0.first()?;
    Some(String::from_utf8(server.0.to_vec()).unwrap())
}
