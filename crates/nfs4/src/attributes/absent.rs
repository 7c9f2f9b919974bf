//! The attributes of an absent file system (RFC 7530, 8.3; RFC 8881, 11.4).

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use comity_export::{Absent, ServedAt};
use comity_proto::nfs4::{
    Bitmap4, FsLocation4, FsLocations4, Fsid4, Nfsstat4, Pathname4, attribute as a,
};
use comity_xdr::{Counted, Encoder, Opaque};

use crate::compound::Compound;
use crate::stop::Stop;

/// The attributes that an absent file system has.
const OF_ABSENT: Bitmap4 =
    Bitmap4::of(&[a::FSID, a::RDATTR_ERROR, a::FS_LOCATIONS, a::MOUNTED_ON_FILEID]);

/// Distinguishes the fsid of an absent file system from those of exports, which have 1.
const MINOR: u64 = 2;

/// Appends the attributes that GETATTR requests and an absent file system has. A request that does
/// not ask where the files are fails with MOVED (RFC 8881, 11.4.1).
pub(crate) fn absent_fattr4<'a>(
    reply: &mut Encoder,
    (compound, absent): (&Compound<'a>, &Absent<'a>),
    wanted: &Bitmap4,
) -> Result<(), Stop> {
    if !wanted.contains(a::FS_LOCATIONS) {
        return Err(Nfsstat4::Moved.into());
    }
    append(reply, (compound, absent), wanted, Nfsstat4::Ok)
}

/// Appends the attributes of an entry of READDIR that is the root of an absent file system. A
/// client that asks neither where the files are nor for the error of the entry gets no listing
/// (RFC 8881, 11.4.2).
pub(crate) fn absent_entry<'a>(
    reply: &mut Encoder,
    (compound, absent): (&Compound<'a>, &Absent<'a>),
    wanted: &Bitmap4,
) -> Result<(), Stop> {
    match (wanted.contains(a::FS_LOCATIONS), wanted.contains(a::RDATTR_ERROR)) {
        (true, _) => append(reply, (compound, absent), wanted, Nfsstat4::Ok),
        (false, true) => append(reply, (compound, absent), wanted, Nfsstat4::Moved),
        (false, false) => Err(Nfsstat4::Moved.into()),
    }
}

fn append<'a>(
    reply: &mut Encoder,
    (compound, absent): (&Compound<'a>, &Absent<'a>),
    wanted: &Bitmap4,
    error: Nfsstat4,
) -> Result<(), Stop> {
    let said = wanted.and(&OF_ABSENT);
    reply.value(&said);
    let length = reply.word();
    let start = reply.checkpoint();
    for number in said.iter() {
        match number {
            a::FSID => reply.value(&fsid4(absent)),
            a::RDATTR_ERROR => reply.value(&error),
            a::FS_LOCATIONS => {
                let path = compound.pseudo().path_of(absent.export())?;
                reply.value(&locations(absent, path));
            }
            _ => reply.value(&compound.pseudo().covered_fileid(absent.export())),
        }
    }
    let bytes = reply.length_since(start) as u32;
    reply.set(length, bytes);
    Ok(())
}

fn fsid4(absent: &Absent<'_>) -> Fsid4 {
    Fsid4 { major: u64::from(absent.export().id().0), minor: MINOR }
}

fn locations<'a>(absent: &Absent<'a>, path: &'a Path) -> FsLocations4<'a> {
    let locations = absent.referral().locations().iter().map(location);
    FsLocations4 { fs_root: pathname4(path), locations: Counted(locations.collect()) }
}

fn location(location: &ServedAt) -> FsLocation4<'_> {
    let server = location.servers().map(|server| Opaque(server.as_bytes()));
    FsLocation4 {
        server: Counted(server.collect()),
        rootpath: pathname4(location.path().strip_prefix("/").unwrap_or(location.path())),
    }
}

/// Returns a path without a leading slash as its components.
pub(super) fn pathname4(path: &Path) -> Pathname4<'_> {
    Counted(path.iter().map(|name| Opaque(name.as_bytes())).collect())
}
