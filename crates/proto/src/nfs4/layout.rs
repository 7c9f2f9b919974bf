//! Layouts and devices of parallel NFS (RFC 8881, 3.3.13 to 3.3.23 and 18.40 to 18.44), for layouts
//! of any type. The bodies that belong to one type are opaque here; [`super::files_layout`] and
//! [`super::flexible_files`] decode them.
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode, Opaque};

use super::{Bitmap4, Nfstime4, Stateid4, Verifier4};

/// Numbers of layout types (`layouttype4`). A peer may send numbers that are not listed.
pub mod layout_type {
    /// The files layout (RFC 8881, 13).
    pub const FILES: u32 = 1;
    /// Flexible files (RFC 8435).
    pub const FLEX_FILES: u32 = 4;
}

/// Most bytes of a body that depends on the layout type (`loc_body`, `da_addr_body`, `lou_body`,
/// `lrf_body`). It has room for about a thousand handles of 64 bytes.
pub const LAYOUT_BODY_BYTES_MAX: u32 = 64 << 10;

/// Most segments of one LAYOUTGET that are read.
pub const SEGMENTS_MAX: u32 = 64;

/// Most device ids of one GETDEVICELIST that are read.
pub const DEVICES_MAX: u32 = 1024;

/// A body whose meaning depends on the layout type.
pub type LayoutBody<'a> = Opaque<'a, LAYOUT_BODY_BYTES_MAX>;

/// Names a device, which is a set of data servers: `deviceid4`.
pub type Deviceid4 = [u8; 16];

/// The accesses that a layout allows: `layoutiomode4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub enum Layoutiomode4 {
    Read = 1,
    Rw = 2,
    /// Only in recalls and returns: both of the others.
    Any = 3,
}

/// A type, and a body of that type. It stands for `layout_content4`, `device_addr4`,
/// `layoutupdate4` and `layouthint4`, which are encoded alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LayoutContent4<'a> {
    pub layout_type: u32,
    pub body: LayoutBody<'a>,
}

/// One segment of a layout: `layout4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Layout4<'a> {
    pub offset: u64,
    /// All ones: to the end of the file, however it grows.
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
    /// An open, a lock, a delegation, or a layout that the client has already.
    pub stateid: Stateid4,
    pub maxcount: u32,
}

/// The result of LAYOUTGET. Behind LAYOUTTRYLATER a bool follows the status instead.
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
    /// All layouts of the file system of the current handle.
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
    /// None if the client has no layout of the file any more.
    pub stateid: Option<Stateid4>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Getdeviceinfo4args {
    pub device_id: Deviceid4,
    pub layout_type: u32,
    pub maxcount: u32,
    pub notify_types: Bitmap4,
}

/// The result of GETDEVICEINFO. Behind TOOSMALL the bytes that are needed follow the status (u32).
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

/// The sizes below which a client uses the metadata server for I/O: `threshold_item4`. The hints
/// are one u64 for each bit of the set, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct ThresholdItem4<'a> {
    pub layout_type: u32,
    pub hintset: Bitmap4,
    pub hintlist: Opaque<'a, 64>,
}
