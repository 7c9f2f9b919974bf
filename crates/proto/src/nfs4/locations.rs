//! The servers of a file system: the attribute `fs_locations` (RFC 7530, 8.4; RFC 8881, 11.16; the
//! XDR in RFC 7531 and 5662).
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::Component4;

/// Most components of a path that are decoded: as many names of one byte as Linux allows in a path.
pub const COMPONENTS_MAX: u32 = 2048;

/// Most servers of one location that are decoded.
pub const SERVERS_MAX: u32 = 64;

/// Most locations that are decoded.
pub const LOCATIONS_MAX: u32 = 64;

/// Longest name or address of a server in bytes that is decoded.
pub const SERVER_BYTES_MAX: u32 = 1024;

/// A path below the root of a server; the empty path is the root itself: `pathname4`.
pub type Pathname4<'a> = Counted<Component4<'a>, COMPONENTS_MAX>;

/// Servers with the same files at the same path, by name or by address: `fs_location4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FsLocation4<'a> {
    pub server: Counted<Opaque<'a, SERVER_BYTES_MAX>, SERVERS_MAX>,
    pub rootpath: Pathname4<'a>,
}

/// The path of a file system on this server, and the locations of its files: `fs_locations4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FsLocations4<'a> {
    pub fs_root: Pathname4<'a>,
    pub locations: Counted<FsLocation4<'a>, LOCATIONS_MAX>,
}
