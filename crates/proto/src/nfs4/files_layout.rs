//! The bodies of the files layout (RFC 8881, 13).
#![allow(missing_docs)]

use comity_xdr::{Counted, Decode, Encode};

use super::{Deviceid4, Netaddr4, NfsFh4};

/// The flags in the low bits of `nfl_util`. The other bits are the stripe unit in bytes.
pub mod util {
    /// Dense packing: the stripes follow each other in the file of a data server, without holes
    /// (RFC 8881, 13.4.4).
    pub const DENSE: u32 = 1;
    /// The client sends COMMIT to the metadata server.
    pub const COMMIT_THRU_MDS: u32 = 2;
    pub const STRIPE_UNIT_SIZE_MASK: u32 = 0xffff_ffc0;
}

/// Most entries of a stripe pattern that are decoded.
pub const STRIPES_MAX: u32 = 4096;

/// Most data servers of one device that are decoded.
pub const DATA_SERVERS_MAX: u32 = 256;

/// Most addresses of one data server that are decoded.
pub const ADDRESSES_MAX: u32 = 16;

/// The addresses of one data server: `multipath_list4`.
pub type MultipathList4<'a> = Counted<Netaddr4<'a>, ADDRESSES_MAX>;

/// The data servers of a device: `nfsv4_1_file_layout_ds_addr4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FileLayoutDsAddr4<'a> {
    /// For each stripe, the index of a data server in the other list. A peer may send indexes
    /// beyond the end of the list.
    pub stripe_indices: Counted<u32, STRIPES_MAX>,
    pub multipath_ds_list: Counted<MultipathList4<'a>, DATA_SERVERS_MAX>,
}

/// A layout: `nfsv4_1_file_layout4`.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct FileLayout4<'a> {
    pub deviceid: Deviceid4,
    /// The stripe unit in bytes, and the flags of [`util`].
    pub util: u32,
    pub first_stripe_index: u32,
    pub pattern_offset: u64,
    /// The handles for READ and WRITE. Empty: use the metadata server's handle. One: use it at
    /// every data server. More: one for each data server, or one for each stripe with
    /// [`util::DENSE`].
    pub fh_list: Counted<NfsFh4<'a>, STRIPES_MAX>,
}

impl FileLayout4<'_> {
    /// Returns the stripe unit in bytes. A peer may send zero, so check before dividing by it.
    #[must_use]
    pub const fn stripe_unit_bytes(&self) -> u32 {
        self.util & util::STRIPE_UNIT_SIZE_MASK
    }
}
