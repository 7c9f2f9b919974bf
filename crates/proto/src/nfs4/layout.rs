//! Layouts and devices of parallel NFS (RFC 8881, 3.3.13 to 3.3.23 and 18.40 to 18.44), for all
//! layout types. Bodies that depend on the type are opaque here; [`super::files_layout`] and
//! [`super::flexible_files`] decode them.
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::{Bitmap4, Nfstime4, Stateid4, Verifier4};

/// Numbers of layout types (`layouttype4`). A peer may send other numbers.
pub mod layout_type {
    /// The files layout (RFC 8881, 13).
    pub const FILES: u32 = 1;
    /// Flexible files (RFC 8435).
    pub const FLEX_FILES: u32 = 4;
}

/// Most bytes of a body that depends on the layout type (`loc_body`, `da_addr_body`, `lou_body`,
/// `lrf_body`): room for about a thousand handles of 64 bytes.
pub const LAYOUT_BODY_BYTES_MAX: u32 = 64 << 10;

/// Most segments of one LAYOUTGET that are decoded.
pub const SEGMENTS_MAX: u32 = 64;

/// Most device ids of one GETDEVICELIST that are decoded.
pub const DEVICES_MAX: u32 = 1024;

/// A body whose meaning depends on the layout type.
pub type LayoutBody<'a> = Opaque<'a, LAYOUT_BODY_BYTES_MAX>;

/// The id of a device, which is a set of data servers: `deviceid4`.
pub type Deviceid4 = [u8; 16];

/// The access that a layout allows: `layoutiomode4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Layoutiomode4 {
    Read = 1,
    Rw = 2,
    /// Read and write; only in recalls and returns.
    Any = 3,
}

/// A layout type with a body of that type. It is used for `layout_content4`, `device_addr4`,
/// `layoutupdate4` and `layouthint4`, which have the same encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LayoutContent4<'a> {
    pub layout_type: u32,
    pub body: LayoutBody<'a>,
}

/// One segment of a layout: `layout4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Layout4<'a> {
    pub offset: u64,
    /// The length; all ones reach to the end of the file, even if it grows.
    pub length: u64,
    pub iomode: Layoutiomode4,
    pub content: LayoutContent4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Layoutget4args {
    pub signal_layout_avail: bool,
    pub layout_type: u32,
    pub iomode: Layoutiomode4,
    pub offset: u64,
    pub length: u64,
    pub minlength: u64,
    /// The stateid of an open, a lock, a delegation, or a layout that the client already has.
    pub stateid: Stateid4,
    pub maxcount: u32,
}

/// The result of LAYOUTGET. After LAYOUTTRYLATER, a boolean follows the status instead.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Layoutget4resok<'a> {
    pub return_on_close: bool,
    pub stateid: Stateid4,
    pub layout: Counted<Layout4<'a>, SEGMENTS_MAX>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Layoutcommit4args<'a> {
    pub offset: u64,
    pub length: u64,
    pub reclaim: bool,
    pub stateid: Stateid4,
    pub last_write_offset: Option<u64>,
    pub time_modify: Option<Nfstime4>,
    pub layoutupdate: LayoutContent4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Layoutcommit4resok {
    /// The size of the file, if the commit has changed it.
    pub newsize: Option<u64>,
}

/// The layout of a file that is returned: `layoutreturn_file4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LayoutreturnFile4<'a> {
    pub offset: u64,
    pub length: u64,
    pub stateid: Stateid4,
    pub body: LayoutBody<'a>,
}

/// The layouts that are returned: `layoutreturn4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Layoutreturn4<'a> {
    #[xdr(1)]
    File(LayoutreturnFile4<'a>),
    /// All layouts of the file system of the current filehandle.
    #[xdr(2)]
    Fsid,
    #[xdr(3)]
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Layoutreturn4args<'a> {
    pub reclaim: bool,
    pub layout_type: u32,
    pub iomode: Layoutiomode4,
    pub layoutreturn: Layoutreturn4<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Layoutreturn4resok {
    /// `None` if the client no longer has any layout of the file.
    pub stateid: Option<Stateid4>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Getdeviceinfo4args {
    pub device_id: Deviceid4,
    pub layout_type: u32,
    pub maxcount: u32,
    pub notify_types: Bitmap4,
}

/// The result of GETDEVICEINFO. After TOOSMALL, the needed number of bytes (u32) follows the status
/// instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Getdeviceinfo4resok<'a> {
    pub device_addr: LayoutContent4<'a>,
    pub notification: Bitmap4,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Getdevicelist4args {
    pub layout_type: u32,
    pub maxdevices: u32,
    pub cookie: u64,
    pub cookieverf: Verifier4,
}

#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Getdevicelist4resok {
    pub cookie: u64,
    pub cookieverf: Verifier4,
    pub deviceid_list: Counted<Deviceid4, DEVICES_MAX>,
    pub eof: bool,
}

/// Numbers of the bits in `thi_hintset` (RFC 7862, 12.2.3).
pub mod threshold {
    pub const READ_SIZE: u32 = 0;
    pub const WRITE_SIZE: u32 = 1;
    pub const READ_IO_SIZE: u32 = 2;
    pub const WRITE_IO_SIZE: u32 = 3;
}

/// The sizes below which a client should use the metadata server for I/O: `threshold_item4`. The
/// hint list has one u64 in bytes for each bit of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ThresholdItem4<'a> {
    pub layout_type: u32,
    pub hintset: Bitmap4,
    pub hintlist: Opaque<'a, 64>,
}
