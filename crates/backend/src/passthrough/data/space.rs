use comity_vfs::{Handle, Properties, Result, Space, Time};
use rustix::fs::fstatvfs;

use crate::errno::status;
use crate::passthrough::Passthrough;

/// Largest file size in bytes: the limit of the kernel's signed offsets. The file system's own
/// limit may be lower.
pub(crate) const FILE_SIZE_MAX: u64 = i64::MAX as u64;

/// Hard links that Linux file systems allow at least (ext4: 65,000); none reports its own limit.
const LINKS_MAX: u32 = 65_000;

impl Passthrough {
    /// See [`comity_vfs::Fs::properties`].
    pub(crate) fn properties(&self, node: &Handle) -> Result<Properties> {
        let node = self.node(node)?;
        let whole = fstatvfs(node.fd()).map_err(status)?;
        Ok(Properties {
            file_size_max: FILE_SIZE_MAX,
            name_bytes_max: whole.f_namemax as u32,
            links_max: LINKS_MAX,
            time_delta: Time { seconds: 0, nanoseconds: 1 },
            hard_links: true,
            symbolic_links: true,
            chown_restricted: true,
            case_insensitive: false,
            case_preserving: true,
            clone_bytes: block_bytes(whole.f_bsize),
            maker: self.maker(),
        })
    }

    /// See [`comity_vfs::Fs::statfs`]. The available space excludes the blocks reserved for the
    /// superuser for every caller, because the server gives up its right to them.
    pub(crate) fn statfs(&self, node: &Handle) -> Result<Space> {
        let node = self.node(node)?;
        let whole = fstatvfs(node.fd()).map_err(status)?;
        let bytes = |blocks: u64| blocks.saturating_mul(whole.f_frsize);
        Ok(Space {
            bytes_total: bytes(whole.f_blocks),
            bytes_free: bytes(whole.f_bfree),
            bytes_available: bytes(whole.f_bavail),
            files_total: whole.f_files,
            files_free: whole.f_ffree,
            files_available: whole.f_favail,
        })
    }
}

/// Returns the block size, which is the unit of shared ranges; 1, which requires no alignment, if
/// the file system reports none. The file system itself still decides.
fn block_bytes(size: u64) -> u32 {
    u32::try_from(size).ok().filter(|size| size.is_power_of_two()).unwrap_or(1)
}
