//! The bodies of flexible files layouts (RFC 8435), and the errors that clients report.

use std::net::SocketAddr;

use comity_proto::nfs4::flexible_files::{
    DeviceError4, FfDataServer4, FfDeviceAddr4, FfDeviceVersions4, FfIoerr4, FfLayout4, FfMirror4,
};
use comity_proto::nfs4::{Nfsstat4, Stateid4, operation};
use comity_vfs::MirrorFile;
use comity_xdr::{Counted, Opaque, encoded};

use super::getdeviceinfo::addresses;
use crate::compound::Compound;
use crate::limits::TRANSFER_BYTES_MAX;
use crate::stop::Stop;

/// Returns the body of a layout. A client calls each data server as the user and the group of the
/// mirror there, and reports by LAYOUTCOMMIT how far it has written.
pub(super) fn layout_body(mirrors: &[MirrorFile]) -> Vec<u8> {
    let ids: Vec<[String; 2]> =
        mirrors.iter().map(|mirror| [mirror.uid, mirror.gid].map(|id| id.to_string())).collect();
    // Clients read from the mirror with the largest number.
    let efficiencies = (0..mirrors.len() as u32).rev();
    let mirrors = mirrors.iter().zip(&ids).zip(efficiencies);
    let mirrors = mirrors.map(|((mirror, [user, group]), efficiency)| FfMirror4 {
        data_servers: Counted(vec![FfDataServer4 {
            deviceid: mirror.device,
            efficiency,
            stateid: Stateid4::ANONYMOUS,
            fh_vers: Counted(vec![Opaque(&mirror.handle)]),
            user: Opaque(user.as_bytes()),
            group: Opaque(group.as_bytes()),
        }]),
    });
    let mirrors = Counted(mirrors.collect());
    encoded(&FfLayout4 { stripe_unit: 0, mirrors, flags: 0, stats_collect_hint: 0 })
}

/// Returns the body of a device, which is a server of NFSv3.
pub(super) fn device_body(servers: &[SocketAddr]) -> Vec<u8> {
    let version = FfDeviceVersions4 {
        version: 3,
        minorversion: 0,
        rsize: TRANSFER_BYTES_MAX,
        wsize: TRANSFER_BYTES_MAX,
        tightly_coupled: false,
    };
    addresses(servers, |lists| {
        let netaddrs = Counted(lists.into_iter().flat_map(|list| list.0).collect());
        encoded(&FfDeviceAddr4 { netaddrs, versions: Counted(vec![version]) })
    })
}

/// Notes the errors that a client with a layout of the current file has met at data servers. Errors
/// of writes count only if the layout allows writing. One error of a kind at each device is enough.
pub(super) fn note_errors(
    compound: &Compound<'_>,
    reports: &[FfIoerr4],
    writes: bool,
) -> Result<(), Stop> {
    let (view, node) = compound.real(Nfsstat4::Inval)?;
    let mut noted = Vec::new();
    let errors =
        reports.iter().flat_map(|report| report.errors.0.iter().map(move |it| (report, it)));
    for (report, error) in errors.filter(|(_, error)| is_harm(error, writes)) {
        let is_read = error.operation == operation::READ;
        if noted.contains(&(error.deviceid, is_read)) {
            continue;
        }
        noted.push((error.deviceid, is_read));
        match is_read {
            true => {
                let range = (report.offset, report.length);
                view.note_mirror_read_error(node, &error.deviceid, range)?;
            }
            false => view.note_mirror_error(node, &error.deviceid)?,
        }
    }
    Ok(())
}

/// Returns whether an error tells that a mirror is broken. A client is refused if its layout was
/// revoked. One that cannot reach a data server for reading uses another one; the mirror is whole.
const fn is_harm(error: &DeviceError4, writes: bool) -> bool {
    const OK: u32 = Nfsstat4::Ok as u32;
    const PERM: u32 = Nfsstat4::Perm as u32;
    const ACCESS: u32 = Nfsstat4::Access as u32;
    const DELAY: u32 = Nfsstat4::Delay as u32;
    const GRACE: u32 = Nfsstat4::Grace as u32;
    const NXIO: u32 = Nfsstat4::NxIo as u32;
    match (error.status, error.operation) {
        (OK | PERM | ACCESS | DELAY | GRACE, _) | (NXIO, operation::READ) => false,
        (_, operation::READ) => true,
        (_, operation::WRITE | operation::COMMIT) => writes,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_harm_of(status: Nfsstat4, operation: u32, writes: bool) -> bool {
        let status = status as u32;
        is_harm(&DeviceError4 { deviceid: [1; 16], status, operation }, writes)
    }

    #[test]
    fn an_error_of_a_write_breaks_a_mirror_only_by_a_layout_for_writing() {
        assert!(is_harm_of(Nfsstat4::NxIo, operation::WRITE, true));
        assert!(is_harm_of(Nfsstat4::Io, operation::COMMIT, true));
        assert!(!is_harm_of(Nfsstat4::Io, operation::WRITE, false));
    }

    #[test]
    fn a_refusal_or_a_server_that_a_reader_does_not_reach_breaks_no_mirror() {
        for status in [Nfsstat4::Access, Nfsstat4::Perm, Nfsstat4::Delay] {
            assert!(!is_harm_of(status, operation::WRITE, true), "{status:?}");
        }
        assert!(!is_harm_of(Nfsstat4::NxIo, operation::READ, true));
        assert!(is_harm_of(Nfsstat4::Io, operation::READ, false));
        assert!(!is_harm_of(Nfsstat4::Io, operation::OPEN, true));
    }
}
