//! Callbacks about layouts and devices (RFC 8881, 20.3 and 20.12). CB_NOTIFY_DEVICEID carries its
//! notifications as [`super::Notify4`].
#![allow(missing_docs)]

use comity_xdr::{Decode, Encode};

use super::{Deviceid4, Fsid4, Layoutiomode4, NfsFh4, Stateid4};

/// The layout of one file that is recalled: `layoutrecall_file4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct LayoutrecallFile4<'a> {
    pub fh: NfsFh4<'a>,
    pub offset: u64,
    pub length: u64,
    pub stateid: Stateid4,
}

/// The layouts that are recalled: `layoutrecall4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum Layoutrecall4<'a> {
    #[xdr(1)]
    File(LayoutrecallFile4<'a>),
    #[xdr(2)]
    Fsid(Fsid4),
    #[xdr(3)]
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct CbLayoutrecall4args<'a> {
    pub layout_type: u32,
    pub iomode: Layoutiomode4,
    /// True if the layout has changed, so that the client should no longer write by it.
    pub changed: bool,
    pub recall: Layoutrecall4<'a>,
}

/// Numbers of the notifications about devices in the bitmap of [`super::Notify4`].
pub mod notify_deviceid {
    pub const CHANGE: u32 = 1;
    pub const DELETE: u32 = 2;
}

/// `notify_deviceid_delete4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct NotifyDeviceidDelete4 {
    pub layout_type: u32,
    pub deviceid: Deviceid4,
}

/// `notify_deviceid_change4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct NotifyDeviceidChange4 {
    pub layout_type: u32,
    pub deviceid: Deviceid4,
    /// True if the old mapping is invalid from now on.
    pub immediate: bool,
}
