//! The bodies of the flexible files layout (RFC 8435), and the operations LAYOUTERROR and
//! LAYOUTSTATS (RFC 7862, 15.6 and 15.7), whose reports may also be part of LAYOUTRETURN.
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::files_layout::MultipathList4;
use super::{Deviceid4, LayoutContent4, Netaddr4, NfsFh4, Nfstime4, OPAQUE_BYTES_MAX, Stateid4};

/// Bits of `ffl_flags`.
pub mod flags {
    pub const NO_LAYOUTCOMMIT: u32 = 1;
    pub const NO_IO_THRU_MDS: u32 = 2;
    pub const NO_READ_IO: u32 = 4;
    pub const WRITE_ONE_MIRROR: u32 = 8;
}

/// Most NFS versions of one device, and handles for them, that are decoded.
pub const VERSIONS_MAX: u32 = 16;

/// Most mirrors of one layout that are decoded.
pub const MIRRORS_MAX: u32 = 16;

/// Most data servers of one mirror that are decoded.
pub const MIRROR_SERVERS_MAX: u32 = 256;

/// Most errors, and most reports, of one operation that are decoded.
pub const REPORTS_MAX: u32 = 256;

/// The uid or gid that an NFSv3 client must send to a data server, as a decimal string.
pub type SyntheticId<'a> = Opaque<'a, OPAQUE_BYTES_MAX>;

/// An NFS version that a data server supports: `ff_device_versions4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct FfDeviceVersions4 {
    pub version: u32,
    pub minorversion: u32,
    /// Most bytes of a READ.
    pub rsize: u32,
    /// Most bytes of a WRITE.
    pub wsize: u32,
    pub tightly_coupled: bool,
}

/// A data server: `ff_device_addr4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FfDeviceAddr4<'a> {
    pub netaddrs: MultipathList4<'a>,
    pub versions: Counted<FfDeviceVersions4, VERSIONS_MAX>,
}

/// The file of a data server in a layout: `ff_data_server4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FfDataServer4<'a> {
    pub deviceid: Deviceid4,
    /// Clients prefer the mirror with the largest number for reading.
    pub efficiency: u32,
    pub stateid: Stateid4,
    /// One handle for each of the device's versions, or one for all.
    pub fh_vers: Counted<NfsFh4<'a>, VERSIONS_MAX>,
    pub user: SyntheticId<'a>,
    pub group: SyntheticId<'a>,
}

/// One copy of the file: `ff_mirror4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FfMirror4<'a> {
    pub data_servers: Counted<FfDataServer4<'a>, MIRROR_SERVERS_MAX>,
}

/// A layout: `ff_layout4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FfLayout4<'a> {
    /// The stripe unit in bytes; zero if the file is not striped.
    pub stripe_unit: u64,
    pub mirrors: Counted<FfMirror4<'a>, MIRRORS_MAX>,
    pub flags: u32,
    /// Seconds between two LAYOUTSTATS; zero if the server does not want any.
    pub stats_collect_hint: u32,
}

/// An error that a client met at a data server: `device_error4`. Status and operation are plain
/// numbers, because a client may send any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct DeviceError4 {
    pub deviceid: Deviceid4,
    pub status: u32,
    pub operation: u32,
}

/// Errors in a range of a file: `ff_ioerr4`. The arguments of LAYOUTERROR have the same encoding.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FfIoerr4 {
    pub offset: u64,
    pub length: u64,
    pub stateid: Stateid4,
    pub errors: Counted<DeviceError4, REPORTS_MAX>,
}

/// The arguments of LAYOUTERROR.
pub type Layouterror4args = FfIoerr4;

/// `io_info4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct IoInfo4 {
    pub count: u64,
    pub bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Layoutstats4args<'a> {
    pub offset: u64,
    pub length: u64,
    pub stateid: Stateid4,
    pub read: IoInfo4,
    pub write: IoInfo4,
    pub deviceid: Deviceid4,
    pub layoutupdate: LayoutContent4<'a>,
}

/// `ff_io_latency4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Encode, Decode)]
pub struct FfIoLatency4 {
    pub ops_requested: u64,
    pub bytes_requested: u64,
    pub ops_completed: u64,
    pub bytes_completed: u64,
    pub bytes_not_delivered: u64,
    pub total_busy_time: Nfstime4,
    pub aggregate_completion_time: Nfstime4,
}

/// The body of LAYOUTSTATS: `ff_layoutupdate4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct FfLayoutupdate4<'a> {
    pub addr: Netaddr4<'a>,
    pub fhandle: NfsFh4<'a>,
    pub read: FfIoLatency4,
    pub write: FfIoLatency4,
    pub duration: Nfstime4,
    pub local: bool,
}

/// Statistics of a client's operations at a data server: `ff_iostats4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct FfIostats4<'a> {
    pub offset: u64,
    pub length: u64,
    pub stateid: Stateid4,
    pub read: IoInfo4,
    pub write: IoInfo4,
    pub deviceid: Deviceid4,
    pub layoutupdate: FfLayoutupdate4<'a>,
}

/// The body of LAYOUTRETURN: `ff_layoutreturn4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FfLayoutreturn4<'a> {
    pub ioerr_report: Counted<FfIoerr4, REPORTS_MAX>,
    pub iostats_report: Counted<FfIostats4<'a>, REPORTS_MAX>,
}
